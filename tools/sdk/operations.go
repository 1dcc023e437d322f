package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	mux "github.com/muxinc/mux-go/v6"
)

// notSupported are the operations of Video and System that the library has and the service does not.
var notSupported = strings.Fields(`
	WebInputsApi.CreateWebInput WebInputsApi.DeleteWebInput WebInputsApi.GetWebInput WebInputsApi.LaunchWebInput WebInputsApi.ListWebInputs
	WebInputsApi.ReloadWebInput WebInputsApi.ShutdownWebInput WebInputsApi.UpdateWebInputUrl
`)

// analytics are the library's interfaces of another product, which is refused as a whole.
var analytics = strings.Fields("DimensionsApi ErrorsApi ExportsApi FiltersApi IncidentsApi MetricsApi MonitoringApi " +
	"RealTimeApi VideoViewsApi")

// operations calls every operation of the library with an ID that nothing has: each is there, or says why not.
func (r run) operations() error {
	var absent []string
	client := reflect.ValueOf(r.APIClient).Elem()
	for i := range client.NumField() {
		service := client.Type().Field(i)
		if !service.IsExported() || !strings.HasSuffix(service.Name, "Api") {
			continue
		}
		for m := range client.Field(i).NumMethod() {
			name := service.Name + "." + client.Field(i).Type().Method(m).Name
			refusal, err := r.something(client.Field(i).Method(m))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if refusal.Error.Type == "not_supported" && !slices.Contains(analytics, service.Name) {
				absent = append(absent, name)
			}
			if slices.Contains(analytics, service.Name) && refusal.Error.Type != "not_supported" {
				return fmt.Errorf("%s: %+v", name, refusal)
			}
		}
	}
	slices.Sort(absent)
	want := slices.Clone(notSupported)
	slices.Sort(want)
	if !slices.Equal(absent, want) {
		return fmt.Errorf("not supported are\n%v\nwant\n%v", absent, want)
	}
	return nil
}

// refusal is the body of an error.
type refusal struct {
	Error struct {
		Type     string   `json:"type"`
		Messages []string `json:"messages"`
	} `json:"error"`
}

// something calls a method of the library and gives its refusal; none when it has succeeded.
func (r run) something(method reflect.Value) (refusal, error) {
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		in := method.Type().In(i)
		switch {
		case method.Type().IsVariadic() && i == method.Type().NumIn()-1:
		case in.Kind() == reflect.String:
			args = append(args, reflect.ValueOf("nothingHasThisID").Convert(in))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	out := method.Call(args)
	err, _ := out[len(out)-1].Interface().(error)
	if err == nil {
		return refusal{}, nil
	}
	var got refusal
	if json.Unmarshal(r.server.said, &got) != nil || len(got.Error.Messages) == 0 {
		return refusal{}, fmt.Errorf("%w: %s", err, r.server.said)
	}
	for _, text := range got.Error.Messages {
		if strings.Contains(text, "nothing under this path") {
			return refusal{}, errors.New(text)
		}
	}
	return got, nil
}

func (r run) usage() error {
	hour := time.Now().Add(-3 * time.Hour).Truncate(time.Hour)
	var made []string
	for i := range 3 {
		a, err := r.create(mux.CreateAssetRequest{Passthrough: fmt.Sprint("p", i)})
		if err != nil {
			return err
		}
		if err := r.world(fmt.Sprintf("/test/delivered?asset=%s&seconds=%d&at=%d", a.Id, 10-i,
			hour.Unix())); err != nil {
			return err
		}
		made = append(made, a.Id)
	}
	var got []string
	for page := int32(1); ; page++ {
		list, err := r.DeliveryUsageApi.ListDeliveryUsage(mux.WithParams(&mux.ListDeliveryUsageParams{
			Page: page, Limit: 2, Timeframe: []string{fmt.Sprint(hour.Unix()), fmt.Sprint(hour.Unix() + 3600)},
		}))
		if err != nil {
			return err
		}
		if len(list.Data) == 0 {
			break
		}
		if list.TotalRowCount != 3 || !slices.Equal(list.Timeframe, []int64{hour.Unix(), hour.Unix() + 3600}) {
			return fmt.Errorf("%d reports of %v", list.TotalRowCount, list.Timeframe)
		}
		for _, d := range list.Data {
			got = append(got, d.AssetId)
			if err := want("seconds delivered", d.DeliveredSeconds, float64(11-len(got))); err != nil {
				return err
			}
		}
	}
	if !slices.Equal(got, made) {
		return fmt.Errorf("reports of %v, want %v", got, made)
	}
	for _, id := range made {
		if err := r.AssetsApi.DeleteAsset(id); err != nil {
			return err
		}
	}
	return nil
}

func (r run) uploads() error {
	made, err := r.DirectUploadsApi.CreateDirectUpload(mux.CreateUploadRequest{CorsOrigin: "*", Timeout: 600})
	if err != nil {
		return err
	}
	found, err := r.DirectUploadsApi.GetDirectUpload(made.Data.Id)
	if err != nil {
		return err
	}
	list, err := r.DirectUploadsApi.ListDirectUploads()
	if err != nil {
		return err
	}
	cancelled, err := r.DirectUploadsApi.CancelDirectUpload(made.Data.Id)
	if err != nil {
		return err
	}
	_, again := r.DirectUploadsApi.CancelDirectUpload(made.Data.Id)
	return errors.Join(
		want("status", found.Data.Status, "waiting"), want("timeout", found.Data.Timeout, 600),
		want("uploads listed", len(list.Data), 1),
		want("status of a cancelled one", cancelled.Data.Status, "cancelled"),
		refused[mux.ForbiddenError]("cancelled again", again),
	)
}

// trouble has the library see what a busy server or one that is down says: it has no retries of its own, but a class
// for each.
func (r run) trouble() error {
	next := http.DefaultTransport
	defer func() { http.DefaultTransport = next }()
	ask := func(status int) error {
		http.DefaultTransport = fixed(status)
		config := mux.NewConfiguration(mux.WithBasicAuth("id", "secret"))
		_, err := mux.NewAPIClient(config).AssetsApi.ListAssets()
		return err
	}
	http.DefaultTransport = next
	stranger := mux.NewAPIClient(mux.NewConfiguration(mux.WithBasicAuth("id", "secret")))
	_, unknown := stranger.AssetsApi.ListAssets()
	return errors.Join(
		refused[mux.UnauthorizedError]("wrong credentials", unknown),
		refused[mux.TooManyRequestsError]("429", ask(http.StatusTooManyRequests)),
		refused[mux.ServiceError]("503", ask(http.StatusServiceUnavailable)),
	)
}

// fixed is a server that always says the same.
type fixed int

func (f fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: int(f), Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"error":{"type":"trouble","messages":["again"]}}`)),
	}, nil
}
