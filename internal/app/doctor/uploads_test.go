package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestUploads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		left  UploadsLeft
		err   error
		level Level
		text  string
		mend  []string
	}{
		{UploadsLeft{}, nil, OK, "0 under way, none abandoned", nil},
		{UploadsLeft{Underway: 3}, nil, OK, "3 under way, none abandoned", nil},
		{
			UploadsLeft{Underway: 1, Late: 2, LateBytes: 5 << 20},
			nil, Warning,
			"1 under way; 2 over and not cleared, with 5.0 MiB",
			[]string{"within ten minutes", "upload.clear"},
		},
		{
			UploadsLeft{Unknown: 1, UnknownBytes: 3 << 30, Partly: true},
			nil, Warning,
			"0 under way; 1 abandoned that no row of the database knows, with at least 3.0 GiB",
			[]string{"a day after", "right database"},
		},
		{
			UploadsLeft{Late: 1, Unknown: 2},
			nil, Warning,
			"1 over and not cleared, with 0.0 MiB; 2 abandoned that no row of the database knows, with 0.0 MiB",
			[]string{"within ten minutes", "a day after"},
		},
		{UploadsLeft{}, errors.New("no database"), Warning, "no database", []string{"database and storage"}},
	} {
		f := Uploads{func(context.Context) (UploadsLeft, error) { return tt.left, tt.err }}.Run(t.Context())
		if f.Level != tt.level || !strings.HasSuffix(f.Text, tt.text) || (f.Mend == "") != (len(tt.mend) == 0) {
			t.Errorf("%+v: got %+v", tt.left, f)
		}
		for _, part := range tt.mend {
			if !strings.Contains(f.Mend, part) {
				t.Errorf("%+v: %q is not in %q", tt.left, part, f.Mend)
			}
		}
	}
}
