package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// resolve runs a case of http:resolve. It prepares the approval as the setup says. Afterwards, there may be only
// approved effects.
func resolve(s *env) got {
	if setupTool(s.c) == runCommand {
		s.terminal = s.openHost(nil)
	} else {
		s.open(s.ownTools(setupTool(s.c)))
	}
	if s.c.Category == "tenancy" {
		s.open1("", "userB")
	}
	s.prepare()
	switch {
	case s.has("concurrent"):
		return s.concurrent()
	case s.has("race"):
		return s.race()
	}
	before := s.effects()
	a := s.send(s.compose(routes["resolve"]))
	s.sameAsMissing(a)
	s.must(s.deliver())
	s.asDecided(a, before)
	return gotOf(a)
}

// asDecided compares the effects with the response. A new approval leads to exactly one effect, and every other
// response leads to none.
func (s *env) asDecided(a testkit.Answer, before int) {
	var said struct{ Decision string }
	if a.HTTP == http.StatusOK {
		s.must(json.Unmarshal(a.Body, &said))
	}
	want := before
	if strings.HasPrefix(said.Decision, "approve") && before == 0 {
		want = 1
	}
	if n := s.effects(); n != want {
		s.wrong("%d effects, want %d", n, want)
	}
	if said.Decision == string(run.ApproveAlways) {
		s.exactlyAllowed(s.runs["OPEN/"+s.as].Approvals[0])
	}
}

// exactlyAllowed compares the allowlist with the recipients that were shown: each exact address, for this tool.
func (s *env) exactlyAllowed(ap testkit.Approval) {
	var args struct{ To, Cc, Bcc []string }
	s.must(json.Unmarshal(ap.Args, &args))
	want := map[string]bool{}
	for _, to := range slices.Concat(args.To, args.Cc, args.Bcc) {
		want[to] = true
	}
	entries := s.allowlist()
	for _, e := range entries {
		if !want[e.Recipient] || e.Tool != ap.Tool {
			s.wrong("the allowlist has %q for %s", e.Recipient, e.Tool)
		}
	}
	if len(entries) != len(want) {
		s.wrong("the allowlist has %d entries, want %d", len(entries), len(want))
	}
}

type allowed struct{ ID, Tool, Recipient string }

func (s *env) allowlist() []allowed {
	var list struct{ Entries []allowed }
	s.get(s.as, "/allowlist", &list)
	return list.Entries
}

var (
	expiredSetup = regexp.MustCompile(`^expired_(\d+[smh])$`)
	toolSetup    = regexp.MustCompile(`^open_tool=(\w+)$`)
)

// setupTool returns the tool in the setup. Countersign may not have it.
func setupTool(c Case) string {
	setup, _ := c.Input["setup"].(string)
	if m := toolSetup.FindStringSubmatch(setup); m != nil {
		return m[1]
	}
	return ""
}

// prepare creates the approval of a case as the setup says.
func (s *env) prepare() {
	setup := s.takeText("setup")
	asked := s.prepared(setup)
	s.runs["OPEN/"+s.as] = asked
	if after := expiredSetup.FindStringSubmatch(setup); after != nil {
		late, err := time.ParseDuration(after[1])
		s.must(err)
		s.pass(approvalTTL + late)
		return
	}
	s.done(asked, setup)
}

var (
	cancelledSetup = regexp.MustCompile(`cancel|run_(failed|ended|over)`)
	deletedSetup   = regexp.MustCompile(`deleted|removed|gone|missing`)
	disabledSetup  = regexp.MustCompile(`disabled|shut_?out|revoked`)
	tamperedSetup  = regexp.MustCompile(
		`^stored_(args|hash|argshash|preview|tool|uid|owner)_(tampered|changed|edited|swapped)$`)
	nothingSetup = regexp.MustCompile(`^(open|pending|waiting)?(_multi_recipient|_several_recipients|_many)?$`)
)

// done brings the approval into the state that the setup names.
func (s *env) done(asked testkit.Answer, setup string) {
	ap, tampered := asked.Approvals[0], tamperedSetup.FindStringSubmatch(setup)
	switch {
	case nothingSetup.MatchString(setup), toolSetup.MatchString(setup):
	case tampered != nil:
		s.tamperApproval(ap, tampered[1])
	case disabledSetup.MatchString(setup):
		s.disable(s.as)
	case cancelledSetup.MatchString(setup):
		s.cancel(s.as, asked.RunID)
	case deletedSetup.MatchString(setup):
		s.commit(store.Delete(document.ApprovalPath(ap.ApprovalID), time.Time{}))
	case strings.HasPrefix(setup, "already_approved"), strings.HasPrefix(setup, "approved"):
		s.decided(s.as, asked, "approve_once")
	case strings.HasPrefix(setup, "already_rejected"), strings.HasPrefix(setup, "rejected"):
		s.decided(s.as, asked, "reject")
	default:
		s.unknown("the setup %q", setup)
	}
}

// tamperApproval changes a stored approval directly in the store.
func (s *env) tamperApproval(stored testkit.Approval, part string) {
	var ap run.Approval
	s.change(document.ApprovalPath(stored.ApprovalID), &ap, func() {
		switch part {
		case "args":
			ap.Args = json.RawMessage(strings.Replace(string(ap.Args), "ana@example.com", "evil@x.com", 1))
		case "preview":
			ap.Preview.Title = "Read a mail"
		case "tool":
			ap.Tool = "calendar_event_create"
		case "uid", "owner":
			ap.UID = "userB"
		default:
			ap.ArgsHash = strings.Repeat("0", len(ap.ArgsHash))
		}
	})
}

// prepared creates a run that waits as the setup says.
func (s *env) prepared(setup string) testkit.Answer {
	m := toolSetup.FindStringSubmatch(setup)
	switch {
	case m != nil && m[1] == "calendar_event_create":
		return s.opened(s.as, m[1], testkit.Event("x", s.now().AddDate(0, 1, 0)))
	case m != nil && m[1] == runCommand:
		return s.askOn(s.terminal, once(runCommand, testkit.Command("touch x")))
	case m != nil && m[1] != "gmail_send":
		return s.opened(s.as, m[1], map[string]any{"text": "x"})
	case nothingSetup.MatchString(setup) && strings.Contains(setup, "_"):
		return s.opened(s.as, "gmail_send", map[string]any{"to": []string{"ana@example.com", "Bo@Example.com"},
			"cc": []string{"cy@example.org"}, "subject": "s", "body": canaryOf(s.as)})
	}
	return s.open1("", s.as)
}

// concurrent sends many decisions at once: a number of equal ones, or several kinds.
func (s *env) concurrent() got {
	v, _ := s.take("concurrent")
	body, _ := s.take("body")
	bodies := s.crowd(v, body)
	answers := together(len(bodies), func(i int) (testkit.Answer, error) {
		return s.client(s.as)(s.ctx, "POST", "/api/agent/approvals/resolve", bodies[i])
	})
	return s.oneWinner(answers)
}

// together calls do n times concurrently, and returns the responses.
func together(n int, do func(i int) (testkit.Answer, error)) []testkit.Answer {
	answers := make([]testkit.Answer, n)
	proof.AtOnce(n, func(i int) {
		a, err := do(i)
		proof.Must(err)
		answers[i] = a
	})
	return answers
}

func (s *env) crowd(v, body any) (bodies []string) {
	kinds, ok := v.([]any)
	if !ok {
		return slices.Repeat([]string{jsonOf(body)}, s.number(v))
	}
	for _, kind := range kinds {
		k, _ := kind.(map[string]any)
		if k["decision"] == nil {
			s.unknown("concurrent: %v", kind)
		}
		one := jsonOf(map[string]any{"approvalId": s.runs["OPEN/"+s.as].Approvals[0].ApprovalID,
			"decision": k["decision"]})
		bodies = append(bodies, slices.Repeat([]string{one}, s.number(k["n"]))...)
	}
	return bodies
}

// oneWinner compares the responses about one approval with each other, with the effects, and with later reads.
func (s *env) oneWinner(answers []testkit.Answer) got {
	won := map[string]bool{}
	for _, a := range answers {
		var said struct{ Decision string }
		switch {
		case a.HTTP == http.StatusOK && json.Unmarshal(a.Body, &said) == nil:
			won[said.Decision] = true
		case a.HTTP != http.StatusConflict:
			return gotOf(a)
		}
	}
	if len(won) != 1 {
		s.stop("these decisions won: %v", won)
	}
	s.must(errors.Join(s.deliver(), s.deliver()))
	want := 0
	for d := range won {
		if strings.HasPrefix(d, "approve") {
			want = 1
		}
	}
	end := s.run(s.as, s.runs["OPEN/"+s.as])
	if n := s.effects(); n != want {
		s.wrong("%d effects, want %d", n, want)
	}
	if want == 1 != (len(end.Actions) == 1 && end.Actions[0].Status == "completed") {
		s.wrong("%v won, and the run says: %s", won, end.Body)
	}
	return got{status: 200, class: "none", detail: fmt.Sprintf("%v won", won)}
}

// race makes several things happen to one approval at once, in several rounds. One of them can be that the approval
// expires.
func (s *env) race() got {
	v, _ := s.take("race")
	list, ok := v.([]any)
	if !ok {
		s.unknown("race: %v", v)
	}
	g := got{status: 200, class: "none"}
	for round := range 8 {
		g.detail += s.raced(list, round)
	}
	return g
}

// raced is one round. Each response is a success, or reports that something else was first. The recorded events show
// what happened.
func (s *env) raced(list []any, round int) (seen string) {
	before := s.effects()
	asked := s.opened(s.as, "gmail_send", testkit.Mail("ana@example.com", fmt.Sprint(round), canaryOf(s.as)))
	if strings.Contains(fmt.Sprint(list...), "expire") {
		s.pass(approvalTTL - time.Duration(4-round)*2*time.Millisecond)
	}
	answers := together(len(list), func(i int) (testkit.Answer, error) { return s.racer(textOf(list[i]), asked) })
	s.must(s.sweep())
	end := s.run(s.as, asked)
	if len(end.Actions) != 1 {
		s.stop("the run has %d actions", len(end.Actions))
	}
	for _, a := range answers {
		seen += fmt.Sprint(a.HTTP, " ")
		if a.HTTP != 200 && a.HTTP != 409 && a.HTTP != 410 {
			s.wrong("answered %d", a.HTTP)
		}
	}
	done := map[bool]int{true: 1}[end.Actions[0].Status == "completed"]
	if s.effects() != before+done || end.Status == "awaiting_confirmation" || end.Status == "executing" {
		s.wrong("%d effects, the action is %s, the run is %s", s.effects()-before, end.Actions[0].Status, end.Status)
	}
	return seen
}

// racer does one of the things that race combines.
func (s *env) racer(what string, asked testkit.Answer) (testkit.Answer, error) {
	fine := testkit.Answer{HTTP: http.StatusOK}
	switch what {
	case "expire_sweep", "sweep", "expire":
		return fine, s.sweep()
	case "resume", "push", "deliver":
		return fine, s.deliver()
	case "cancel":
		return s.client(s.as).Cancel(s.ctx, asked.RunID)
	case "approve_once", "reject", "approve_and_always_allow_recipient":
		return s.client(s.as).Resolve(s.ctx, asked.Approvals[0], what)
	}
	return fine, unknown("%q in a race", what)
}

// replay runs a case in which an approved run continues, and its model would now request other arguments. The stored
// arguments must run.
func replay(s *env) got {
	s.open(nil)
	changes, _ := s.take("model_replay_changes_args")
	if setup := s.takeText("setup"); setup != "approved" || changes != true {
		s.unknown("resume of %q", setup)
	}
	asked := s.open1("", s.as)
	s.w.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "gmail_send",
			Args: testkit.Mail("evil@x.com", "other", "other")}}}
	})
	s.decided(s.as, asked, "approve_once")
	if sent := s.w.Google.Messages(); len(sent) != 1 || strings.Join(sent[0].To, ",") != "ana@example.com" {
		s.wrong("what was sent: %+v", sent)
	}
	return got{status: 200, class: "none", detail: "the stored arguments ran"}
}
