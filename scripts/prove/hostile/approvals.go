package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// resolve runs a case of http:resolve: the approval is made as its setup says, and afterwards nothing may have happened
// except what was approved.
func resolve(s *env) (got, error) {
	if err := s.open(s.ownTools(setupTool(s.c))); err != nil {
		return got{}, err
	}
	if s.c.Category == "tenancy" {
		if _, err := s.open1("", "userB"); err != nil {
			return got{}, err
		}
	}
	if err := s.prepare(); err != nil {
		return got{}, err
	}
	if _, ok := s.peek("concurrent"); ok {
		return s.concurrent()
	}
	if _, ok := s.peek("race"); ok {
		return s.race()
	}
	before := s.effects()
	m, err := s.compose(routes["resolve"])
	if err != nil {
		return got{}, err
	}
	a, err := s.send(m)
	if err != nil {
		return got{}, err
	}
	g := gotOf(a)
	if err := errors.Join(s.sameAsMissing(a), s.deliver()); err != nil {
		return g, err
	}
	return g, s.asDecided(a, before)
}

// asDecided compares the effects with the answer: a new approval is carried out, once, and nothing else is.
func (s *env) asDecided(a testkit.Answer, before int) error {
	var said struct{ Decision string }
	if a.HTTP == http.StatusOK {
		if err := json.Unmarshal(a.Body, &said); err != nil {
			return err
		}
	}
	want := before
	if strings.HasPrefix(said.Decision, "approve") && before == 0 {
		want = 1
	}
	if n := s.effects(); n != want {
		return fmt.Errorf("%d effects, want %d", n, want)
	}
	if said.Decision == string(agent.ApproveAlways) {
		return s.exactlyAllowed(s.runs["OPEN/"+s.as])
	}
	return nil
}

// exactlyAllowed compares the allowlist with the recipients that were shown: each exact address, for this tool.
func (s *env) exactlyAllowed(run testkit.Answer) error {
	var args struct{ To, Cc, Bcc []string }
	if err := json.Unmarshal(run.Approvals[0].Args, &args); err != nil {
		return err
	}
	want := map[string]bool{}
	for _, to := range append(append(args.To, args.Cc...), args.Bcc...) {
		want[to] = true
	}
	entries, err := s.allowlist()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !want[e.Recipient] || e.Tool != run.Approvals[0].Tool {
			return fmt.Errorf("the allowlist has %q for %s", e.Recipient, e.Tool)
		}
	}
	if len(entries) != len(want) {
		return fmt.Errorf("the allowlist has %d entries, want %d", len(entries), len(want))
	}
	return nil
}

type allowed struct{ ID, Tool, Recipient string }

func (s *env) allowlist() ([]allowed, error) {
	a, err := s.call(s.as, "GET", "/api/agent/allowlist", "")
	var list struct{ Entries []allowed }
	return list.Entries, errors.Join(err, json.Unmarshal(a.Body, &list))
}

var (
	expiredSetup = regexp.MustCompile(`^expired_(\d+[smh])$`)
	toolSetup    = regexp.MustCompile(`^open_tool=(\w+)$`)
)

// setupTool returns the tool that the setup names, which Countersign may not have.
func setupTool(c Case) string {
	setup, _ := c.Input["setup"].(string)
	if m := toolSetup.FindStringSubmatch(setup); m != nil {
		return m[1]
	}
	return ""
}

// prepare makes the approval of a case as its setup says.
func (s *env) prepare() error {
	setup, err := s.takeText("setup")
	if err != nil {
		return err
	}
	run, err := s.prepared(setup)
	if err != nil {
		return err
	}
	s.runs["OPEN/"+s.as] = run
	after := expiredSetup.FindStringSubmatch(setup)
	if after != nil {
		late, err := time.ParseDuration(after[1])
		s.pass(approvalTTL + late)
		return err
	}
	return s.done(run, setup)
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
func (s *env) done(run testkit.Answer, setup string) error {
	tampered := tamperedSetup.FindStringSubmatch(setup)
	switch {
	case nothingSetup.MatchString(setup), toolSetup.MatchString(setup):
		return nil
	case tampered != nil:
		return s.tamperApproval(run, tampered[1])
	case disabledSetup.MatchString(setup):
		u := agent.User{}
		return s.change(document.UserPath(s.as), &u, func() { u.Disabled = true })
	case cancelledSetup.MatchString(setup):
		_, err := s.call(s.as, "POST", "/api/agent/runs/"+run.RunID+"/cancel", "")
		return err
	case deletedSetup.MatchString(setup):
		_, err := s.w.App.Store.Commit(s.ctx,
			store.Delete(document.ApprovalPath(run.Approvals[0].ApprovalID), time.Time{}))
		return err
	case strings.HasPrefix(setup, "already_approved"), strings.HasPrefix(setup, "approved"):
		return s.decided(s.as, run, "approve_once")
	case strings.HasPrefix(setup, "already_rejected"), strings.HasPrefix(setup, "rejected"):
		return s.decided(s.as, run, "reject")
	}
	return unknown("the setup %q", setup)
}

// tamperApproval changes a stored approval directly in the store.
func (s *env) tamperApproval(run testkit.Answer, part string) error {
	var ap agent.Approval
	return s.change(document.ApprovalPath(run.Approvals[0].ApprovalID), &ap, func() {
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

// prepared makes a run that waits for what the setup names.
func (s *env) prepared(setup string) (testkit.Answer, error) {
	m := toolSetup.FindStringSubmatch(setup)
	switch {
	case m != nil && m[1] == "calendar_event_create":
		return s.opened(s.as, m[1], testkit.Event("x", s.now().AddDate(0, 1, 0)))
	case m != nil && m[1] != "gmail_send":
		return s.opened(s.as, m[1], map[string]any{"text": "x"})
	case nothingSetup.MatchString(setup) && strings.Contains(setup, "_"):
		return s.opened(s.as, "gmail_send", map[string]any{"to": []string{"ana@example.com", "Bo@Example.com"},
			"cc": []string{"cy@example.org"}, "subject": "s", "body": canaryOf(s.as)})
	}
	return s.open1("", s.as)
}

// concurrent sends many decisions at once: one number of the same, or several kinds of them.
func (s *env) concurrent() (got, error) {
	v, _, e1 := s.take("concurrent")
	body, _, e2 := s.take("body")
	if err := errors.Join(e1, e2); err != nil {
		return got{}, err
	}
	bodies, err := s.crowd(v, body)
	if err != nil {
		return got{}, err
	}
	answers := make([]testkit.Answer, len(bodies))
	errs := make([]error, len(bodies))
	began := time.Now()
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Go(func() { answers[i], errs[i] = s.call(s.as, "POST", "/api/agent/approvals/resolve", bodies[i]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return got{}, err
	}
	g, err := s.oneWinner(answers)
	if took := time.Since(began); took > 10*time.Second {
		err = errors.Join(err, fmt.Errorf("the last answer took %v", took))
	}
	return g, err
}

func (s *env) crowd(v, body any) (bodies []string, err error) {
	kinds, ok := v.([]any)
	if !ok {
		n, err := number(v)
		for range n {
			bodies = append(bodies, jsonOf(body))
		}
		return bodies, err
	}
	for _, kind := range kinds {
		k, _ := kind.(map[string]any)
		n, err := number(k["n"])
		if err != nil || k["decision"] == nil {
			return nil, unknown("concurrent: %v", kind)
		}
		for range n {
			bodies = append(bodies, jsonOf(map[string]any{"approvalId": s.runs["OPEN/"+s.as].Approvals[0].ApprovalID,
				"decision": k["decision"]}))
		}
	}
	return bodies, nil
}

// oneWinner compares the answers to one approval with each other, with what happened, and with what is read later.
func (s *env) oneWinner(answers []testkit.Answer) (got, error) {
	won := map[string]bool{}
	for _, a := range answers {
		var said struct{ Decision string }
		switch {
		case a.HTTP == http.StatusOK && json.Unmarshal(a.Body, &said) == nil:
			won[said.Decision] = true
		case a.HTTP != http.StatusConflict:
			return gotOf(a), nil
		}
	}
	if len(won) != 1 {
		return got{}, fmt.Errorf("these decisions won: %v", won)
	}
	if err := errors.Join(s.deliver(), s.deliver()); err != nil {
		return got{}, err
	}
	want := 0
	for d := range won {
		if strings.HasPrefix(d, "approve") {
			want = 1
		}
	}
	run, err := s.run(s.as, s.runs["OPEN/"+s.as])
	if n := s.effects(); n != want {
		err = errors.Join(err, fmt.Errorf("%d effects, want %d", n, want))
	}
	if want == 1 != (len(run.Actions) == 1 && run.Actions[0].Status == "completed") {
		err = errors.Join(err, fmt.Errorf("%v won, and the run says: %s", won, run.Body))
	}
	return got{status: 200, class: "none", detail: fmt.Sprintf("%v won", won)}, err
}

// race has several things happen to one approval at once, again and again; one of them may be that it expires just
// then.
func (s *env) race() (got, error) {
	v, _, err := s.take("race")
	list, ok := v.([]any)
	if err != nil || !ok {
		return got{}, errors.Join(err, unknown("race: %v", v))
	}
	g := got{status: 200, class: "none"}
	for round := range 8 {
		seen, err := s.raced(list, round)
		if g.detail += seen; err != nil {
			return g, err
		}
	}
	return g, nil
}

// raced is one round. Each answer is a success, or says that something else was first; the recorded events are what
// happened.
func (s *env) raced(list []any, round int) (seen string, err error) {
	before := s.effects()
	run, err := s.opened(s.as, "gmail_send", testkit.Mail("ana@example.com", fmt.Sprint(round), canaryOf(s.as)))
	if err != nil {
		return "", err
	}
	if strings.Contains(fmt.Sprint(list...), "expire") {
		s.pass(approvalTTL - time.Duration(4-round)*2*time.Millisecond)
	}
	answers, errs := make([]testkit.Answer, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() { answers[i], errs[i] = s.racer(textOf(list[i]), run) })
	}
	wg.Wait()
	if err := errors.Join(append(errs, s.sweep())...); err != nil {
		return "", err
	}
	end, err := s.run(s.as, run)
	if err != nil || len(end.Actions) != 1 {
		return "", errors.Join(err, fmt.Errorf("the run has %d actions", len(end.Actions)))
	}
	for _, a := range answers {
		seen += fmt.Sprint(a.HTTP, " ")
		if a.HTTP != 200 && a.HTTP != 409 && a.HTTP != 410 {
			return seen, fmt.Errorf("answered %d", a.HTTP)
		}
	}
	done := map[bool]int{true: 1}[end.Actions[0].Status == "completed"]
	if s.effects() != before+done || end.Status == "awaiting_confirmation" || end.Status == "executing" {
		return seen, fmt.Errorf("%d effects, the action is %s, the run is %s", s.effects()-before,
			end.Actions[0].Status, end.Status)
	}
	return seen, nil
}

// racer does one of the things.
func (s *env) racer(what string, run testkit.Answer) (testkit.Answer, error) {
	fine := testkit.Answer{HTTP: http.StatusOK}
	switch what {
	case "expire_sweep", "sweep", "expire":
		return fine, s.sweep()
	case "resume", "push", "deliver":
		return fine, s.deliver()
	case "cancel":
		return s.call(s.as, "POST", "/api/agent/runs/"+run.RunID+"/cancel", "")
	case "approve_once", "reject", "approve_and_always_allow_recipient":
		return s.resolve(s.as, run.Approvals[0], what)
	}
	return fine, unknown("%q in a race", what)
}

// replay is a run that continues while its model, called again, would call with other arguments.
func replay(s *env) (got, error) {
	if err := s.open(nil); err != nil {
		return got{}, err
	}
	setup, e1 := s.takeText("setup")
	changes, _, e2 := s.take("model_replay_changes_args")
	if err := errors.Join(e1, e2); err != nil || setup != "approved" || changes != true {
		return got{}, errors.Join(err, unknown("resume of %q", setup))
	}
	run, err := s.open1("", s.as)
	if err != nil {
		return got{}, err
	}
	s.w.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "gmail_send",
			Args: testkit.Mail("evil@x.com", "other", "other")}}}
	})
	if err := s.decided(s.as, run, "approve_once"); err != nil {
		return got{}, err
	}
	sent := s.w.Google.Messages()
	if len(sent) != 1 || strings.Join(sent[0].To, ",") != "ana@example.com" {
		return got{}, fmt.Errorf("what was sent: %+v", sent)
	}
	return got{status: 200, class: "none", detail: "the stored arguments ran"}, nil
}
