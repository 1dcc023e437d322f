package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	// StateHeader is a field of the responses of /healthz.
	StateHeader = "Millrace-State"
	// Leaving is what it has while the node takes nobody any more.
	Leaving = "leaving"
)

// healthPatience is how long the service may take to respond.
const healthPatience = 5 * time.Second

func healthCommands() []command {
	return []command{
		of("health", "ask the service on this machine whether it is up",
			"Requests /healthz at http-addr, with the settings of serve, and prints the version that runs. Exit code "+
				"1 if nothing responds, or something else does, or if the node is leaving. For health checks of "+
				"containers.", simply(health)),
	}
}

func health(ctx context.Context, r *request) error {
	address, err := nearAddress(r.cfg.HTTPAddr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", http.NoBody)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req) // no proxy, no redirect
	if err != nil {
		return fmt.Errorf("ask %s: %w", address, err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing comes after it
	version := resp.Header.Get("Millrace-Version")
	if resp.StatusCode != http.StatusNoContent || version == "" {
		return fmt.Errorf("%s responds with %s, which is not Millrace's /healthz", address, resp.Status)
	}
	if resp.Header.Get(StateHeader) == Leaving {
		return fmt.Errorf("millrace %s is leaving: it accepts no more encoders", version)
	}
	return r.say("millrace %s", version)
}

// nearAddress is where this machine reaches a listener.
func nearAddress(listens string) (string, error) {
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return "", fmt.Errorf("read http-addr: %w", err)
	}
	if port == "0" {
		return "", errors.New("http-addr has port 0, so the service's port is not known")
	}
	switch host { // a container need not know the name localhost
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}
