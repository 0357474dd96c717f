package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// logger returns the server's logger. With the form json it writes the lines of Cloud Logging. Otherwise it writes
// short lines derived from those, so both forms have the same redactions.
func logger(w io.Writer, form string, o obs.Options) *slog.Logger {
	if form != "json" {
		w = shortLines{w}
	}
	return obs.New(w, o)
}

// shortLines turns lines of Cloud Logging into readable ones: `15:04:05 POST /api/agent/run 200 12ms`. It omits
// successful sweeps and health checks. Each Write must be one whole line, as slog's handlers write them.
type shortLines struct{ to io.Writer }

// httpRequest is the field of the line that reports the end of a request.
type httpRequest struct {
	RequestMethod, RequestURL, Latency string
	Status                             int
}

// Write implements io.Writer. It writes a line that is not a JSON object unchanged.
func (s shortLines) Write(line []byte) (int, error) {
	var fields map[string]json.RawMessage
	var known struct {
		Time              time.Time
		Severity, Message string
		HTTPRequest       *httpRequest
	}
	if json.Unmarshal(line, &fields) != nil || json.Unmarshal(line, &known) != nil {
		return s.to.Write(line)
	}
	text := known.Message + others(fields)
	if r := known.HTTPRequest; r != nil {
		if r.quiet() {
			return len(line), nil
		}
		text = r.String()
	}
	if known.Severity != "INFO" && known.Severity != "" {
		text = known.Severity + " " + text
	}
	if _, err := fmt.Fprintf(s.to, "%s %s\n", known.Time.Local().Format(time.TimeOnly), text); err != nil {
		return 0, err
	}
	return len(line), nil
}

// path returns the route without its method, because a mux's pattern can begin with one.
func (r *httpRequest) path() string { return strings.TrimPrefix(r.RequestURL, r.RequestMethod+" ") }

func (r *httpRequest) quiet() bool {
	p := r.path()
	return r.Status < 400 && (p == "/health" || p == "/api/agent/sweep")
}

// String formats the request.
func (r *httpRequest) String() string {
	took, err := time.ParseDuration(r.Latency)
	if err != nil {
		return fmt.Sprintf("%s %s %d", r.RequestMethod, r.path(), r.Status)
	}
	return fmt.Sprintf("%s %s %d %s", r.RequestMethod, r.path(), r.Status, took.Round(time.Millisecond))
}

// others formats the remaining fields as ` key=value`. It omits the labels and the trace, which matter only among many
// instances.
func others(fields map[string]json.RawMessage) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case key == "time", key == "severity", key == "message", key == "httpRequest",
			strings.HasPrefix(key, "logging.googleapis.com/"):
		default:
			fmt.Fprintf(&b, " %s=%s", key, fields[key])
		}
	}
	return b.String()
}
