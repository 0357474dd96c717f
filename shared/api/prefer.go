package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// The limits of a wait.
const (
	maxWait     = 50               // seconds; the maximum that a client can ask for
	maxPlanWait = 300              // seconds; the same for a plan
	answerSpare = 2 * time.Second  // reserved at the end of a request's time, to send the answer
	keyedWait   = 20 * time.Second // for the run of a repeated Idempotency-Key, if the client states no preference
)

// preferredWait returns how long the client wants the answer to wait for the run (RFC 7240, Prefer: wait=N, in
// seconds), limited to 0 to most seconds. As the RFC requires, it ignores a preference that it cannot parse, and uses
// the first of several.
func preferredWait(h http.Header, most int) (wait time.Duration, ok bool) {
	for _, p := range preferences(strings.Join(h.Values("Prefer"), ",")) {
		p, _, _ = strings.Cut(p, ";") // wait has no parameters
		name, value, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		return seconds(strings.TrimSpace(value), most)
	}
	return 0, false
}

// preferences splits the header at its commas, except for commas in quotes.
func preferences(header string) []string {
	quoted, escaped := false, false
	return strings.FieldsFunc(header, func(c rune) bool {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		}
		return c == ',' && !quoted
	})
}

func seconds(s string, most int) (time.Duration, bool) {
	if n := len(s); n >= 2 && s[0] == '"' && s[n-1] == '"' {
		s = s[1 : n-1]
	}
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	switch {
	case digits != s:
		n = 0
	case err != nil: // more digits than an int holds
		n = most
	}
	return time.Duration(min(n, most)) * time.Second, true
}

// A patience is how long a request may wait for its run.
type patience struct {
	until     time.Time
	preferred bool // set by the client
	seconds   int  // the preference as applied
}

// patience returns how long this request, which has just begun, may wait: at most most seconds, and always short enough
// to answer within the function's time.
func (r *request) patience(most int) patience {
	wait, ok := preferredWait(r.Header, most)
	wait = max(0, min(wait, r.api.Budget-answerSpare)).Truncate(time.Second)
	return patience{until: time.Now().Add(wait), preferred: ok, seconds: int(wait / time.Second)}
}

// keyed returns the patience of a request that may be a repeat, whose first send may still be advancing the run.
func (p patience) keyed(key string) patience {
	if key != "" && !p.preferred {
		p.until = time.Now().Add(keyedWait)
	}
	return p
}

// settled waits until the run no longer moves by itself or the patience ends, and returns its latest view. It reads
// nothing while the run does not change, and does not advance the run. It does not wait if the client did not ask for
// that, or if the user already holds the maximum number of requests open.
func (r *request) settled(ctx context.Context, v *run.View, p patience) *run.View {
	left := time.Until(p.until)
	if v.Moving && left > 0 {
		leave, free := r.api.holders.take(r.uid, r.api.heldMost())
		if !free {
			return v
		}
		defer leave()
		v = r.awaitRest(ctx, v, left)
	}
	if p.preferred {
		r.w.Header().Set("Preference-Applied", fmt.Sprintf("wait=%d", p.seconds))
	}
	return v
}

// awaitRest watches the run until it rests or the time is up.
func (r *request) awaitRest(ctx context.Context, v *run.View, most time.Duration) *run.View {
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)-answerSpare)
	}
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)() // stop when the client disconnects
	last, err := r.api.Loop.AwaitRest(waiting, r.uid, v.RunID)
	if err != nil {
		r.warn(ctx, "waiting for a run was cut off", err, "runId", v.RunID)
	}
	if last == nil {
		return v
	}
	now, err := last.View(ctx)
	if err != nil {
		r.warn(ctx, "a run that was waited for could not be shown", err, "runId", v.RunID)
		return v
	}
	return now
}
