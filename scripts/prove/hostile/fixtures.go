package hostile

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
)

// fixture returns the value of a name in the notation. It creates what the value needs at the first use.
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
		asked := s.clientRun(cmp.Or(arg, s.as))
		return map[string]string{"CLIENTRUN": asked.RunID, "CLIENTCALL": asked.Actions[0].ActionID}[kind], nil
	case "OPEN", "APPROVAL", "RUN", "THREAD", "ACTION", "HASH", "ARGSHASH":
		if s.w == nil {
			return nil, unknown("$%s before there is a deployment", name)
		}
		asked := s.open1(strings.TrimPrefix(name, kind), cmp.Or(arg, s.as))
		ap := asked.Approvals[0]
		return map[string]string{"OPEN": ap.ApprovalID, "APPROVAL": ap.ApprovalID, "HASH": ap.ArgsHash,
			"ARGSHASH": ap.ArgsHash, "RUN": asked.RunID, "THREAD": asked.ThreadID, "ACTION": ap.ActionID}[kind], nil
	}
	return nil, unknown("the fixture $%s", name)
}

// userToken returns a user's token. The user expired stands for the case's user with an expired token. A user whose
// name begins with disabled is disabled first.
func (s *env) userToken(uid string) (string, error) {
	if uid == "" {
		uid = s.as
	}
	claims := userClaims(uid, s.now())
	switch {
	case uid == "expired":
		claims["sub"], claims["exp"] = s.as, s.now().Add(-time.Hour).Unix()
	case strings.HasPrefix(uid, "disabled") && s.w != nil:
		s.disable(uid)
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
	runID := s.runs["PUSH"].RunID
	switch kind {
	case "", "valid":
	case "missing", "unknown":
		runID = "nosuchrunnosuchrun0000000"
	default:
		return nil, unknown("$PUSH(%s)", kind)
	}
	var message map[string]any
	err := json.Unmarshal(queue.Envelope(queue.Message{RunID: runID}, "1", 1, s.now()), &message)
	return message, err
}

// canaryOf returns a text that only the user may ever read.
func canaryOf(uid string) string { return "CANARY of " + uid + " alone" }

// disable disables the user, as an operator would.
func (s *env) disable(uid string) {
	u := run.User{UID: uid}
	s.change(document.UserPath(uid), &u, func() { u.Disabled = true })
}

// open1 creates a run of the user that waits for the approval of an e-mail. The number distinguishes several runs.
func (s *env) open1(number, uid string) testkit.Answer {
	key := "OPEN" + number + "/" + uid
	if _, ok := s.runs[key]; !ok {
		s.runs[key] = s.opened(uid, "gmail_send", testkit.Mail("ana@example.com", "Report "+number, canaryOf(uid)))
	}
	return s.runs[key]
}

// opened creates a run of the user that waits for the approval of the call.
func (s *env) opened(uid, tool string, args any) testkit.Answer {
	asked := s.ask(uid, "Please do it. "+canaryOf(uid), testkit.Wants(tool, args))
	if len(asked.Approvals) != 1 {
		s.stop("the fixture's run waits for nothing: %s", asked.Body)
	}
	return asked
}

// clientTool adds a tool that the user's client executes. No release has such a tool.
func clientTool(l *unit.Env) {
	t, err := tool.Remote("scan", "Scans a page.", json.RawMessage(`{"type":"object"}`))
	if err != nil {
		panic(err) // unreachable: the definition is valid
	}
	testkit.Offer(l, t)
}

// clientRun creates a run of the user that waits for the user's client.
func (s *env) clientRun(uid string) testkit.Answer {
	key := "CLIENT/" + uid
	if asked, ok := s.runs[key]; ok {
		return asked
	}
	asked := s.ask(uid, "Please scan it. "+canaryOf(uid), testkit.Wants("scan", map[string]any{}))
	if len(asked.Actions) != 1 || asked.Actions[0].Status != "awaiting_confirmation" {
		s.stop("the fixture's run waits for no client: %s", asked.Body)
	}
	s.runs[key] = asked
	return asked
}

// answered sends the answer of the user's client.
func (s *env) answered() {
	asked := s.clientRun(s.as)
	a := s.call(s.as, "POST", "/api/agent/runs/"+asked.RunID+"/answers",
		`{"results":[{"callId":"`+asked.Actions[0].ActionID+`","result":"first"}]}`)
	if a.HTTP != 200 {
		s.stop("the fixture's answer: %s", a.Body)
	}
}

// decided sends the decision of the run's user, and lets the run continue.
func (s *env) decided(uid string, asked testkit.Answer, decision string) {
	for _, ap := range asked.Approvals {
		if a := s.resolve(uid, ap, decision); a.HTTP != 200 {
			s.stop("the fixture's approval: %s", a.Body)
		}
	}
	s.must(s.deliver())
}
