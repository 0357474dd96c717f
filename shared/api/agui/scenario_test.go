package agui_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// TestScenarios covers the other outcomes of a run, as a client reads them.
func TestScenarios(t *testing.T) {
	looks := func(r fakegemini.Request) fakegemini.Turn {
		if r.NoTools {
			return fakegemini.Turn{Text: "That is all."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "look"}}}
	}
	loses := func() func(string) fakegoogle.Fault { // drops the response to the first e-mail
		var once atomic.Bool
		return func(op string) fakegoogle.Fault {
			if strings.HasSuffix(op, ".send") && once.CompareAndSwap(false, true) {
				return fakegoogle.Fault{Kind: fakegoogle.ResetAfter}
			}
			return fakegoogle.Fault{}
		}
	}
	approve := func(s *scene) agent {
		return s.answers(s.says("mail bob").asked(s.t).resolves("approve_once"))
	}
	for name, c := range map[string]struct {
		settings []string
		to       []string // recipients of the model's e-mails; with none, the model looks for a missing file
		act      func(s *scene) agent
		want     string
		sent     int
	}{
		"two cards, decided at once": {nil, []string{"bob@example.com", "eve@example.com"}, func(s *scene) agent {
			i := s.says("mail both").Interrupts
			return s.answers(i[1].resolves("reject"), i[0].resolves("approve_once"))
		}, wantsBoth + "; told: Its user said no, so it was not done.; done; " +
			"assistant: Sent “s” to bob@example.com.\n" +
			"Not done, because you rejected it: Send an e-mail to one person (To: eve@example.com, Subject: s).\n" +
			"You rejected part of this.", 1},
		"two cards, one by one": {nil, []string{"bob@example.com", "eve@example.com"}, func(s *scene) agent {
			i := s.says("mail both").Interrupts
			wait := map[string]any{"interruptId": i[0].ID, "status": "cancelled"}
			now := s.answers(wait, i[1].resolves("approve_once"))
			return s.answers(now.asked(s.t).resolves("approve_once"))
		}, wantsBoth + "; done; done; " + whatCame, 2},
		"always allowed": {nil, bob, func(s *scene) agent {
			s.answers(s.says("mail bob").asked(s.t).resolves("approve_and_always_allow_recipient"))
			// an identical e-mail would ask again
			s.w.SetModel(testkit.Wants("gmail_send", testkit.Mail(bob[0], "another", "b")))
			return s.says("mail bob")
		}, sentToBob + "; " + sentToBob, 2},
		"forbidden": {[]string{"POLICY_DENIED=example.com"}, bob, func(s *scene) agent { return s.says("mail bob") },
			wantsBob + "; told: It reaches one person, who has a blocked address.; " +
				whatCame + nothing, 0},
		"no account": {nil, bob, func(s *scene) agent { return s.says("mail bob") },
			wantsBob + "; told: No Google account is linked. Please link one first. Open Linked accounts in the " +
				"console.; " + whatCame + nothing, 0},
		"an answer that was lost, and it was done": {direct, bob, func(s *scene) agent {
			s.w.SetFault(loses())
			return s.answers(approve(s).asked(s.t).resolves("confirm_done"))
		}, wantsBob + "; told: " + unknown + "; told: Its user says that it was done.; " + whatCame, 1},
		"an answer that was lost, and it is done again": {direct, bob, func(s *scene) agent {
			s.w.SetFault(loses())
			anew := s.answers(approve(s).asked(s.t).resolves("start_new"))
			return s.answers(anew.asked(s.t).resolves("approve_once"))
		}, wantsBob + "; gmail_send to bob@example.com; told: " + unknown + "; done; " + whatCame +
			"; assistant: On record:\n" +
			"It is not known whether this was done: Send an e-mail to one person. Please check.\n" +
			"Sent “s” to bob@example.com.", 2},
		"the last step": {[]string{"MAX_MODEL_CALLS=2"}, nil, func(s *scene) agent { return s.says("look") },
			"user: look; look; told: This tool does not exist.; assistant: That is all." + nothing, 0},
		"cancelled": {nil, bob, func(s *scene) agent {
			now := s.says("mail bob")
			s.calls("POST", "/api/agent/runs/"+now.State.Countersign.RunID+"/cancel")
			s.answers(now.asked(s.t).resolves("approve_once"))
			s.w.SetModel(testkit.Says("Hello."))
			return s.says("hello") // the client has dropped its card
		}, wantsBob + "; told: This was cancelled.; assistant: This was cancelled.; user: hello; assistant: Hello.", 0},
		"deleted": {nil, bob, func(s *scene) agent {
			now := s.says("mail bob")
			s.calls("POST", "/api/agent/runs/"+now.State.Countersign.RunID+"/cancel")
			s.calls("DELETE", "/api/agent/threads/"+now.State.Countersign.ThreadID)
			if late := s.answers(now.asked(s.t).resolves("approve_once")); !strings.Contains(late.Error, "HTTP 404") {
				s.t.Errorf("a late answer is told %s", late)
			}
			return s.does("reload", nil)
		}, "", 0},
		"no agent of conversations": {nil, bob, func(s *scene) agent {
			planner := map[string]any{"agent": "planner"}
			now := s.does("say", map[string]any{"text": "plan it", "forwardedProps": planner})
			now.Error, _, _ = strings.Cut(now.Error, ":")
			return now
		}, "user: plan it; error: HTTP 400", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := chatclients.Open(t, c.settings...)
			w.Unlinked = name == "no account"
			w.SetModel(looks)
			if len(c.to) > 0 {
				chatclients.Mails(w, c.to...)
			}
			now := c.act(&scene{connect(t, w, "ana", "mine"), w})
			want(t, now, c.want)
			sent(t, w, c.sent)
		})
	}
}

const (
	wantsBoth = "user: mail both; gmail_send to bob@example.com; gmail_send to eve@example.com"
	nothing   = "; assistant: On record: nothing was sent or changed."
	unknown   = "It is not known whether this was done. Gmail was asked to send this e-mail, and its answer was lost " +
		"or the sent e-mail differs from the approved one. Please check your Sent folder."
)

var bob, direct = []string{"bob@example.com"}, []string{"GMAIL_SEND_MODE=direct"}

// scene is a client of ana's and the deployment that it uses.
type scene struct {
	*client
	w *testkit.Deployment
}

// calls calls the API as ana's console does.
func (s *scene) calls(method, path string) {
	s.t.Helper()
	if a, err := s.w.Call(s.t.Context(), "ana", method, path, ""); err != nil || a.HTTP/100 != 2 {
		s.t.Fatalf("%s %s: %v, %d %s; want a.HTTP/100 2", method, path, err, a.HTTP, a.Body)
	}
}
