package github

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// The limits of the logs of failed jobs.
const (
	maxLogs    = 5        // logs that are read for one list of checks
	maxLogTail = 64 << 10 // octets at the end of a log in which the last lines are searched for
	maxLog     = 32 << 20 // octets of a whole log
)

// actions is the app whose checks are the jobs of GitHub Actions. A job's check and the job have the same ID.
const actions = "github-actions"

// stamp is the time at the beginning of each line of a log.
var stamp = lazyregexp.New(`(?m)^\x{FEFF}?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z `)

// addLogs adds the ends of the logs of failed jobs that report no output. If a log is missing, it adds the reason.
func (h *hub) addLogs(ctx context.Context, api *githubapi.Client, in OneCommit, runs []*githubapi.CheckRun,
	checks []Check) error {
	left, logs := maxAllChecks, 0
	for _, c := range checks {
		left -= clip.EncodedLen(c.Output)
	}
	for i, r := range runs {
		c := &checks[i]
		if c.State != stateFailure || c.Output != "" || r.GetApp().GetSlug() != actions {
			continue
		}
		if logs++; logs > maxLogs {
			c.NoLog = "Only the first logs are listed."
			continue
		}
		log, err := h.jobLog(ctx, api, in, r.GetID())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.NoLog = fault.As(err).Message
		}
		c.Output = lastLines(log, min(maxCheckText, left))
		left -= clip.EncodedLen(c.Output)
	}
	return nil
}

// jobLog returns the end of a job's log. GitHub answers with an address at another host. The request to that host does
// not contain the user's token.
func (h *hub) jobLog(ctx context.Context, api *githubapi.Client, in OneCommit, job int64) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	at, res, err := api.Actions.GetWorkflowJobLogs(ctx, in.Owner, in.Repo, job, 0)
	switch {
	case res != nil && res.StatusCode != http.StatusFound:
		return "", noLog("GitHub answers with the status %d.", res.StatusCode).Because(err)
	case err != nil || at == nil || !outbound.Secure(at):
		return "", noLog("GitHub gives no address of the log.").Because(err)
	}
	raw, err := h.logTail(ctx, at)
	if err != nil {
		return "", err
	}
	text, _ := supervisor.Text(raw, maxLogTail)
	return obs.RemoveSecrets(stamp.ReplaceAllString(text, "")), nil
}

// logTail reads the end of a log.
func (h *hub) logTail(ctx context.Context, at *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, noLog("GitHub gives no address of the log.").Because(err)
	}
	res, err := h.strangers.Do(req)
	if err != nil {
		return nil, noLog("The log's host cannot be reached.").Because(err)
	}
	defer func() { _ = res.Body.Close() }() // only the needed part was read
	if res.StatusCode != http.StatusOK {
		return nil, noLog("The log's host answers with the status %d.", res.StatusCode)
	}
	var end tail
	switch n, err := io.Copy(&end, io.LimitReader(res.Body, maxLog+1)); {
	case err != nil:
		return nil, noLog("The log could not be read to its end.").Because(err)
	case n > maxLog:
		return nil, noLog("The log exceeds %d MiB.", maxLog>>20)
	}
	if over := len(end.kept) - maxLogTail; over > 0 {
		_, whole, found := bytes.Cut(end.kept[over:], []byte("\n")) // half a line may contain half a secret
		if !found {
			return nil, noLog("The last line of the log exceeds %d KiB.", maxLogTail>>10)
		}
		return whole, nil
	}
	return end.kept, nil
}

func noLog(format string, args ...any) *fault.Error {
	return fault.New(fault.Tool, "no_log", format, args...)
}

// A tail keeps at least the last maxLogTail octets that are written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - maxLogTail; over > maxLogTail {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}
