package hostile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/tool"
)

// fixture returns what a name of the notation stands for. What it needs is made the first time.
func (s *env) fixture(name, arg string) (any, error) {
	kind := strings.TrimRight(name, "0123456789")
	switch kind {
	case "PROJECT":
		return project, nil
	case "AUD", "AUDIENCE":
		return s.claims()["aud"], nil
	case "ISS", "ISSUER":
		return s.claims()["iss"], nil
	case "PUSHAUD", "PUSH_AUD", "PUSH_AUDIENCE":
		return testkit.PushAudience, nil
	case "PUSHACCOUNT", "PUSH_ACCOUNT", "PUSH_SERVICE_ACCOUNT", "PUSHER":
		return testkit.PushAccount, nil
	case "EMAIL":
		return testkit.Address(cmp.Or(arg, s.as)), nil
	case "UID":
		return cmp.Or(arg, s.as), nil
	case "JWT":
		return s.userToken(arg)
	case "PUSHJWT":
		return s.pushFixture(arg)
	case "PUSH":
		return s.envelope(arg)
	case "CALL":
		return s.openCall(arg)
	case "HISTORY":
		return s.keptHistory(arg)
	case "CLIENTRUN", "CLIENTCALL":
		run, err := s.clientRun(cmp.Or(arg, s.as))
		if err != nil {
			return nil, err
		}
		return map[string]string{"CLIENTRUN": run.RunID, "CLIENTCALL": run.Actions[0].ActionID}[kind], nil
	case "OPEN", "APPROVAL", "RUN", "THREAD", "ACTION", "HASH", "ARGSHASH":
		if s.w == nil {
			return nil, unknown("$%s before there is a deployment", name)
		}
		uid := arg
		if uid == "" {
			uid = s.as
		}
		run, err := s.open1(strings.TrimPrefix(name, kind), uid)
		if err != nil {
			return nil, err
		}
		ap := run.Approvals[0]
		return map[string]string{"OPEN": ap.ApprovalID, "APPROVAL": ap.ApprovalID, "HASH": ap.ArgsHash,
			"ARGSHASH": ap.ArgsHash, "RUN": run.RunID, "THREAD": run.ThreadID, "ACTION": ap.ActionID}[kind], nil
	}
	return nil, unknown("the fixture $%s", name)
}

// userToken returns a user's token; the names disabled… and expired mean what they say.
func (s *env) userToken(uid string) (string, error) {
	if uid == "" {
		uid = s.as
	}
	claims := userClaims(uid, s.now())
	switch {
	case uid == "expired":
		claims["sub"], claims["exp"] = s.as, s.now().Add(-time.Hour).Unix()
	case strings.HasPrefix(uid, "disabled") && s.w != nil:
		u := agent.User{UID: uid}
		if err := s.change(document.UserPath(uid), &u, func() { u.Disabled = true }); err != nil {
			return "", err
		}
	}
	token, err := s.net.sign(claims)
	s.secret(token)
	return token, err
}

func (s *env) pushFixture(kind string) (string, error) {
	claims := pushClaims(s.now())
	switch kind {
	case "", "valid":
	case "expired":
		claims["exp"] = s.now().Add(-time.Hour).Unix()
	default:
		return "", unknown("$PUSHJWT(%s)", kind)
	}
	token, err := s.net.sign(claims)
	s.secret(token)
	return token, err
}

// envelope returns a push message about the run of the case.
func (s *env) envelope(kind string) (any, error) {
	run := s.runs["PUSH"].RunID
	switch kind {
	case "", "valid":
	case "missing", "unknown":
		run = "nosuchrunnosuchrun0000000"
	default:
		return nil, unknown("$PUSH(%s)", kind)
	}
	var message map[string]any
	err := json.Unmarshal(queue.Envelope(run, "", "1", 1, s.now()), &message)
	return message, err
}

// canaryOf returns a text that only the user may ever read.
func canaryOf(uid string) string { return "CANARY of " + uid + " alone" }

// open1 makes a run of the user that waits for approval of a mail; the number distinguishes several.
func (s *env) open1(number, uid string) (testkit.Answer, error) {
	key := "OPEN" + number + "/" + uid
	if run, ok := s.runs[key]; ok {
		return run, nil
	}
	run, err := s.opened(uid, "gmail_send", testkit.Mail("ana@example.com", "Report "+number, canaryOf(uid)))
	s.runs[key] = run
	return run, err
}

// opened makes a run of the user that waits for approval of the call.
func (s *env) opened(uid, tool string, args any) (testkit.Answer, error) {
	run, err := s.ask(uid, "Please do it. "+canaryOf(uid), testkit.Wants(tool, args))
	if err == nil && len(run.Approvals) != 1 {
		err = fmt.Errorf("the fixture's run waits for nothing: %s", run.Body)
	}
	return run, err
}

// clientTool adds a tool that the user's client carries out: no release has one of its own.
func clientTool(l *loop.Loop) {
	t, err := tool.Remote("scan", "Scans a page.", json.RawMessage(`{"type":"object"}`))
	if err != nil {
		panic(err) // unreachable: it is fine
	}
	l.Tools["scan"] = t
}

// clientRun makes a run of the user that waits for the user's client.
func (s *env) clientRun(uid string) (testkit.Answer, error) {
	key := "CLIENT/" + uid
	if run, ok := s.runs[key]; ok {
		return run, nil
	}
	run, err := s.ask(uid, "Please scan it. "+canaryOf(uid), testkit.Wants("scan", map[string]any{}))
	if err == nil && (len(run.Actions) != 1 || run.Actions[0].Status != "awaiting_confirmation") {
		err = fmt.Errorf("the fixture's run waits for no client: %s", run.Body)
	}
	s.runs[key] = run
	return run, err
}

// answered has the user's client answer.
func (s *env) answered() error {
	run, err := s.clientRun(s.as)
	if err != nil {
		return err
	}
	a, err := s.call(s.as, "POST", "/api/agent/runs/"+run.RunID+"/answers",
		`{"results":[{"callId":"`+run.Actions[0].ActionID+`","result":"first"}]}`)
	if err == nil && a.HTTP != 200 {
		err = fmt.Errorf("the fixture's answer: %s", a.Body)
	}
	return err
}

// decided has the user of the run decide, and the run continue.
func (s *env) decided(uid string, run testkit.Answer, decision string) error {
	for _, ap := range run.Approvals {
		a, err := s.resolve(uid, ap, decision)
		if err == nil && a.HTTP != 200 {
			err = fmt.Errorf("the fixture's approval: %s", a.Body)
		}
		if err != nil {
			return err
		}
	}
	return s.deliver()
}
