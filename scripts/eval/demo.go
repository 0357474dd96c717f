package main

import (
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// serveDemo serves the offline demo model, and points the settings of the model at it.
func serveDemo(settings map[string]string) (closer, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	web := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: fakegemini.New(
		func(r fakegemini.Request) fakegemini.Turn {
			turn := demomodel.Model(func() time.Time { return began(r.System) })(r)
			turn.Delay = 0 // no user watches
			return turn
		})}
	go func() { _ = web.Serve(ln) }() // ends with Close
	for name, value := range map[string]string{"GEMINI_API_KEY": "offline-demo-model", "GEMINI_MODEL": "offline-demo",
		"GOOGLE_GEMINI_BASE_URL": "http://" + ln.Addr().String(), "VERTEX_AI_PROJECT_ID": "", "VERTEX_AI_LOCATION": "",
		"VERTEX_AI_ENDPOINT": "", "GEMINI_FALLBACK_MODELS": "", "GEMINI_MODELS": ""} {
		settings[name] = value
	}
	return web.Close, nil
}

var beginning = regexp.MustCompile(`The run began at \w+ (\d{4}-\d\d-\d\d \d\d:\d\d UTC)\.`)

// began returns when the run began, as its instructions say.
func began(system string) time.Time {
	if m := beginning.FindStringSubmatch(system); m != nil {
		if at, err := time.Parse("2006-01-02 15:04 MST", m[1]); err == nil {
			return at
		}
	}
	return time.Now()
}
