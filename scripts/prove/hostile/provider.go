package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// failure describes how a provider fails around an approved effect, and the final number of effects.
type failure struct {
	op      string
	fault   fakegoogle.Fault
	always  bool   // the provider fails every time, not only the first
	taken   string // the object that has already used the event's ID, if the provider answers 409
	crash   bool   // the process dies after the provider's response
	effects int
}

// provider runs a case of tool:side_effect: an approved e-mail or event, with a provider that fails around it.
func provider(s *env) got {
	tool, phrase := s.failing()
	f, err := failureOf(tool, phrase)
	s.must(err)
	if crash := s.takeText("crash"); crash != "" {
		if f.crash = crashed.MatchString(crash); !f.crash {
			s.unknown("a crash %s", crash)
		}
	}
	settings := map[string][]string{"generic": {"GMAIL_SEND_MODE=direct"},
		"calendar": {"CALENDAR_API_ENDPOINT={cloud}/taken/calendar/v3/"}}[tool]
	s.openFaulty(settings...)
	s.w.Handle("/taken/", http.StripPrefix("/taken", taken{s.w.Google, f.taken}))
	r := s.wanted(tool)
	var struck atomic.Int64
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op != f.op || struck.Add(1) > 1 && !f.always {
			return fakegoogle.Fault{}
		}
		if f.crash {
			s.store.Set(faulty.Exit)
		}
		return f.fault
	})
	if f.crash {
		s.dieIn(r, &struck)
	} else {
		s.decided(s.as, r, "approve_once")
	}
	return s.settled(r, f, int(struck.Load()))
}

// crashed matches a crash between the effect and its record.
var crashed = regexp.MustCompile(`after_(response|send|effect|call|insert)|before_(record|outcome|commit)`)

// failing takes the failing tool and the description of the failure.
func (s *env) failing() (tool, phrase string) {
	for _, tool := range []string{"gmail", "calendar", "generic"} {
		if phrase := s.takeText(tool); phrase != "" {
			return tool, phrase
		}
	}
	if !s.has("provider_error_body") {
		s.unknown("a provider that is none of gmail, calendar and generic")
	}
	phrase = s.takeText("provider_error_body")
	s.private[phrase] = true
	return "gmail", "400 " + phrase
}

// wanted creates a run that waits for the approval of the effect.
func (s *env) wanted(tool string) testkit.Answer {
	if tool == "calendar" {
		return s.opened(s.as, "calendar_event_create", testkit.Event("x", s.now().AddDate(0, 1, 0)))
	}
	return s.opened(s.as, "gmail_send", testkit.Mail("ana@example.com", "s", canaryOf(s.as)))
}

// These match the description of a provider's failure: its response, and whether it performed the effect first.
var (
	accepted = regexp.MustCompile(
		`(?i)^(?:(?:is )?(?:accept(?:ed|s)?|sent|sends|delivers|inserts|created|done|stores)(?:,? (?:it )?(?:but|then|and)) |.*\bafter (?:accept|send|insert|it (?:was|is) (?:sent|accepted|done)))`)
	unheard = regexp.MustCompile(
		`(?i)\b(?:before (?:accept|send|insert|anything)|not accepted|nothing (?:was )?(?:sent|done))`)
	refused  = regexp.MustCompile(`^(\d{3})\b ?(.*)$`)
	status   = regexp.MustCompile(`\b[45]\d\d\b`)
	cutOff   = regexp.MustCompile(`(?i)\b(reset|hang.?up|closed|broken pipe|EOF)\b`)
	silent   = regexp.MustCompile(`(?i)\b(time.?out|times out|hangs?|no answer|never answers)\b`)
	emptied  = regexp.MustCompile(`(?i)\b(empty|no body|nothing in it)\b`)
	conflict = regexp.MustCompile(`(?i)^409\b.*(?:our|foreign|other|somebody|cancelled|deleted)`)
	drafted  = regexp.MustCompile(`(?i)^draft (?:is |was |gets )?(edited|changed|deleted|removed|thrown away)`)
)

// how parses the description of a failure. after says whether the failure comes after the effect or before it.
func how(phrase string, after bool) (k fakegoogle.Kind, ok bool) {
	kinds := map[bool][4]fakegoogle.Kind{
		true:  {fakegoogle.ResetAfter, fakegoogle.HangAfter, fakegoogle.EmptyAfter, fakegoogle.StatusAfter},
		false: {fakegoogle.ResetBefore, fakegoogle.HangBefore, fakegoogle.None, fakegoogle.StatusBefore},
	}[after]
	for i, words := range []*regexp.Regexp{cutOff, silent, emptied, status} {
		if words.MatchString(phrase) && kinds[i] != fakegoogle.None {
			return kinds[i], true
		}
	}
	return fakegoogle.None, false
}

// sends are the operations with the effect.
var sends = map[string]string{"gmail": "gmail.drafts.send", "generic": "gmail.messages.send",
	"calendar": "calendar.events.insert"}

// failureOf parses the description of a provider's failure.
func failureOf(tool, phrase string) (failure, error) {
	f := failure{op: sends[tool], effects: 1}
	switch {
	case tool == "calendar" && conflict.MatchString(phrase):
		f.taken = strings.ToLower(phrase)
		f.op = ""
	case accepted.MatchString(phrase), unheard.MatchString(phrase) && !refused.MatchString(phrase):
		kind, ok := how(phrase, accepted.MatchString(phrase))
		if !ok {
			return f, unknown("%s: %s", tool, phrase)
		}
		f.fault.Kind = kind
		f.fault.Status, _ = strconv.Atoi(status.FindString(phrase)) // without a status, the default applies
	case strings.HasPrefix(phrase, "rewrites Message-ID"): // the fake always does this
	case drafted.MatchString(phrase):
		f.op, f.fault.Kind, f.effects = "gmail.drafts.get", fakegoogle.DraftDeleted, 0
		if verb := strings.ToLower(drafted.FindStringSubmatch(phrase)[1]); verb == "edited" || verb == "changed" {
			f.fault.Kind = fakegoogle.DraftEdited
		}
	case silent.MatchString(phrase) || cutOff.MatchString(phrase):
		// The description does not exclude the effect, so assume that it happened.
		f.fault.Kind, _ = how(phrase, true)
	case refused.MatchString(phrase):
		f.refused(refused.FindStringSubmatch(phrase))
	default:
		return f, unknown("%s: %s", tool, phrase)
	}
	return f, nil
}

// googleReason matches words that look like a reason in a Google error.
var googleReason = regexp.MustCompile(`\b[a-z]+(?:[A-Z][a-z]+)+\b`)

var reasons = map[int]string{400: "invalidArgument", 401: "authError", 403: "forbidden", 429: "rateLimitExceeded"}

// refused sets a status that comes before any effect. A transient status is retried, and any other is final.
func (f *failure) refused(m []string) {
	f.fault.Status, _ = strconv.Atoi(m[1]) // three digits
	f.fault.Kind, f.fault.Reason, f.fault.Text = fakegoogle.StatusBefore, reasons[f.fault.Status], m[2]
	if reason := googleReason.FindString(m[2]); reason != "" {
		f.fault.Reason = reason
	}
	if f.fault.Status != 429 && f.fault.Status < 500 {
		f.always, f.effects = true, 0
	}
}

// dieIn approves, and kills the process after the provider's response. Another process takes over.
func (s *env) dieIn(r testkit.Answer, struck *atomic.Int64) {
	s.resolve(s.as, r.Approvals[0], "approve_once")
	go func() { _ = s.deliver() }() // the delivery is interrupted
	for end := time.Now().Add(10 * time.Second); s.effects() == 0 ||
		struck.Load() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.stop("the effect does not begin")
		}
	}
	s.must(errors.Join(s.w.Stop(), s.start(nil)))
	s.pass(10 * time.Minute) // longer than any lease
}

// settled compares the recorded events with the provider's effects.
func (s *env) settled(r testkit.Answer, f failure, calls int) got {
	s.settle(f.effects)
	end := s.run(s.as, r)
	g := gotOf(end)
	if len(end.Actions) != 1 {
		s.stop("the run has %d actions", len(end.Actions))
	}
	did, waits := end.Actions[0].ExecutionStatus, s.pending(s.as)
	switch {
	case did == "succeeded" && f.effects == 1:
		g.decision = "mended"
	case did == "unknown" && len(waits) == 1 && waits[0].Kind == "review":
	case did == "failed" && f.effects == 0 && len(waits) == 0:
	default:
		s.wrong("the record says %q, %d wait, and there were %d effects", did, len(waits), f.effects)
	}
	if f.always && f.fault.Status == 400 && calls != 1 {
		s.wrong("a permanently refused call was tried %d times", calls)
	}
	for _, h := range s.heard {
		for private := range s.private {
			if strings.Contains(string(h.Body), private) {
				s.wrong("%s holds the provider's words", h.what)
			}
		}
	}
	return g
}

// taken is a calendar in which the event's ID is in use: by the run's own event, by another user's event, or by a
// deleted one.
type taken struct {
	google *fakegoogle.Server
	how    string
}

// ServeHTTP implements http.Handler.
func (t taken) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || t.how == "" {
		t.google.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var event map[string]any
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "no event", http.StatusBadRequest)
		return
	}
	id := textOf(event["id"])
	if strings.Contains(t.how, "foreign") || strings.Contains(t.how, "other") ||
		strings.Contains(t.how, "without our") || strings.Contains(t.how, "somebody") {
		delete(event, "extendedProperties")
	}
	t.before(r, r.URL.Path, http.MethodPost, []byte(jsonOf(event)))
	if strings.Contains(t.how, "cancelled") || strings.Contains(t.how, "deleted") {
		t.before(r, r.URL.Path+"/"+id, http.MethodDelete, nil)
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	t.google.ServeHTTP(w, again)
}

// before performs the operation of another client a moment earlier.
func (t taken) before(r *http.Request, path, method string, body []byte) {
	other := r.Clone(r.Context())
	other.Method, other.URL.Path, other.ContentLength = method, path, int64(len(body))
	other.Body = io.NopCloser(bytes.NewReader(body))
	t.google.ServeHTTP(httptest.NewRecorder(), other)
}
