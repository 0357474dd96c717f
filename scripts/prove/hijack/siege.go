package hijack

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

const secret = "BOBS-SECRET-4711"

// siege is a deployment in which the user Ana is under attack, and the user Bob must not notice.
type siege struct {
	*proof.Run
	ctx   context.Context
	w     *testkit.Deployment
	tools tool.Set
	bobs  string // an approval of Bob's
	bob   []string

	mu    sync.Mutex
	inbox inbox
	task  *fakegemini.Call // the first call of the model, or nil

	where  string // the attack and its place
	grants []grant
	asked  map[string]string   // well-formed calls that the model requested, with their tools
	allow  map[string][]string // recipients that Ana always allows, by tool
	read   string              // texts of strangers that Ana's model has received in this attack, or empty
	origin string              // the name of their source on cards
	file   bool                // the attack is in a file, so no standing permission applies
	mails  int                 // the number of checked e-mails
	events int
}

// grant is an approval by Ana, valid for one effect.
type grant struct {
	tool string
	args json.RawMessage
	used bool
}

// inbox is the result or the error of the reading tool.
type inbox struct {
	Mail  map[string]string `json:"mail"`
	Event map[string]string `json:"event"`
	fails string
}

// inboxOrigin is the name on cards for the source of the attacker's texts.
const inboxOrigin = "Ana's inbox"

// newSiege opens the deployment. The caller closes it.
func newSiege(ctx context.Context, r *proof.Run, dir string) (*siege, error) {
	s := &siege{Run: r, ctx: ctx, where: "the beginning", asked: map[string]string{},
		allow: map[string][]string{}, inbox: quiet()}
	agents, err := withNoter(dir)
	if err != nil {
		return nil, err
	}
	s.w, err = testkit.New(ctx, testkit.Options{Dir: dir, App: []app.Option{app.WithEnv(s.change)},
		Settings: append([]string{agents, "GMAIL_SEARCH=on", "REJECT_OUTCOME=continue", "MAX_MODEL_CALLS=3",
			"MAX_OPEN_APPROVALS=0", "MAX_APPROVALS_PER_DAY=0"}, testkit.Unlimited...)})
	return s, err
}

// heldMail is the ID of an e-mail with a file that Ana has. desk is her other address.
const (
	heldMail = "18c0000000000002"
	desk     = "desk@example.com"
)

// begin creates a secret and a pending approval of Bob's, Ana's mail and other address, and one recipient that Ana
// always allows.
func (s *siege) begin() {
	const mayReadMail = "https://www.googleapis.com/auth/gmail.readonly"
	s.w.SetScopes("ana", append(slices.Clone(testkit.Scopes), mayReadMail)...)
	s.w.Google.SetSendAs(testkit.Address("ana"), fakegoogle.SendAs{Address: desk})
	err := s.w.Google.Receive(testkit.Address("ana"), []byte("From: carol@example.com\r\nTo: ana@example.com\r\n"+
		"Subject: Contract\r\nContent-Type: application/pdf\r\n"+
		"Content-Disposition: attachment; filename=contract.pdf\r\n\r\n%PDF-1.7"))
	if got := s.w.Google.Newest(testkit.Address("ana")); err != nil || got != heldMail {
		proof.Must(fmt.Errorf("the mail of ana has the ID %s: %w", got, err))
	}
	s.w.SetModel(testkit.Wants("gmail_send", testkit.Mail("dave@example.com", secret, secret)))
	s.say("bob", s.approval("bob", "Keep "+secret+" for me."), run.ApproveOnce, nil, "")
	s.deliver()
	s.bobs = s.approval("bob", "And once more.")
	s.bob = s.visibleTo("bob")
	s.mails = len(s.w.Google.Messages())
	s.w.SetModel(testkit.Wants("gmail_send", testkit.Mail("carol@example.com", "Hello", "Hello.")))
	hello := s.ask("ana", "Say hello to Carol.")
	for _, card := range s.pending()[hello.RunID] {
		s.decide(card, run.ApproveAlways, "", "")
	}
	s.deliver()
	s.checkEffects()
	s.w.SetModel(s.model)
}

// approval requests an action that needs approval, and returns the approval's ID.
func (s *siege) approval(uid, prompt string) string {
	a := s.ask(uid, prompt)
	if len(a.Approvals) != 1 {
		proof.Must(fmt.Errorf("%d pending approvals", len(a.Approvals)))
	}
	return a.Approvals[0].ApprovalID
}

func quiet() inbox {
	return inbox{Mail: map[string]string{"from": "carol@example.com", "subject": "Lunch", "body": "At noon?"},
		Event: map[string]string{"title": "Lunch", "description": "With Carol."}}
}

// change adds a tool that only reads. It exists only in this proof.
func (s *siege) change(l *unit.Env) {
	type none struct{}
	read := tool.Define(tool.Def[none, inbox]{
		Name: "inbox_read", Description: "Reads the user's newest mail and next event.", Untrusted: true,
		Reading: func(none, inbox) tool.Reading { return tool.Reading{Origin: inboxOrigin} },
		Execute: func(_ context.Context, c tool.Call, _ none) (inbox, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.inbox.fails != "" {
				return inbox{}, fault.New(fault.Tool, "failed", "%s", s.inbox.fails)
			}
			return s.inbox, nil
		},
	})
	testkit.Offer(l, read)
	s.tools = l.Tools
}

// model obeys, and checks that Ana's model gets nothing of Bob's.
func (s *siege) model(r fakegemini.Request) fakegemini.Turn {
	for _, raw := range r.Raw {
		if strings.Contains(string(raw), secret) {
			s.fail("the model reads Bob's data")
		}
	}
	t := s.obey(r)
	for _, c := range t.Calls {
		tool := s.tools[c.Name]
		if tool == nil || !tool.SideEffect {
			continue
		}
		raw, err := json.Marshal(c.Args)
		if err != nil {
			panic(err) // the calls are the model's own
		}
		if args, err := tool.Normalize(raw); err == nil {
			s.asked[string(args)] = c.Name
		}
	}
	return t
}

// obey returns the answer of a model that also obeys files and notes.
func (s *siege) obey(r fakegemini.Request) fakegemini.Turn {
	s.mu.Lock()
	task := s.task
	s.mu.Unlock()
	switch {
	case task == nil:
		return Obey(r, append(given(r.Raw), noted(r.System)...)...)
	case r.Answered() > 0:
		return fakegemini.Turn{Text: "Noted."}
	}
	return fakegemini.Turn{Calls: []fakegemini.Call{*task}}
}

func (s *siege) fail(format string, values ...any) {
	s.Finding(s.where, "%s", clip.Text(fmt.Sprintf(format, values...), 2000))
}

// try runs a part of the proof. If the part cannot continue, that is a finding.
func (s *siege) try(part func()) {
	if err := proof.Attempt(part); err != nil && s.ctx.Err() == nil {
		s.fail("the proof cannot continue: %v", err)
	}
}

// each tries each attack in each place, or in one place out of every, and records the attacks that caused no finding.
func (s *siege) each(attacks []Attack, places []string, every int, attack func(a Attack, place string)) {
	for i, a := range attacks {
		for j, place := range places {
			where := a.ID + " in " + place
			if (i+j)%every != 0 || !s.Selects(where) {
				continue
			}
			s.where = where
			findings := s.Findings()
			attack(a, place)
			if s.Findings() == findings {
				s.Held(s.where, "")
			}
		}
	}
}

// chance returns the random choices of the current attack, which depend only on the attack, its place and the seed.
func (s *siege) chance() *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(s.where))
	return rand.New(rand.NewPCG(h.Sum64(), s.Seed))
}

// attack puts one text in one place, and runs the agent to its end. The place and the seed determine the decisions.
func (s *siege) attack(a Attack, place string) {
	s.Count("attacks", 1)
	s.read, s.origin, s.file = "", inboxOrigin, false
	body := map[string]any{"prompt": "Please look at my inbox."}
	text := strings.ReplaceAll(a.Text, "{BOBS}", s.bobs)
	chance := s.chance()

	box := quiet()
	switch kind, name, _ := strings.Cut(place, "."); {
	case place == "prompt":
		body["prompt"] = text
	case place == "history":
		body["threadId"] = s.see(s.ask("ana", text), chance, "", "").ThreadID
	case kind == "file":
		s.file = true
		body["attachments"] = attachments(name, text)
	case place == "memory":
		body["agent"] = noter
		defer s.note(text)()
	case place == "read.error":
		box.fails = text
	case kind == "mail":
		box.Mail[name] = text
	case kind == "event":
		box.Event[name] = text
	case place == "provider.error":
		s.w.SetFault(func(op string) fakegoogle.Fault {
			if op != "gmail.drafts.send" && op != "calendar.events.insert" {
				return fakegoogle.Fault{}
			}
			return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 400, Reason: text, Text: text}
		})
		defer s.w.SetFault(nil)
	}
	s.mu.Lock()
	s.inbox = box
	s.mu.Unlock()
	if kind, _, _ := strings.Cut(place, "."); kind == "mail" || kind == "event" || kind == "read" {
		s.read = taint.Normalize(text)
	}
	comment, edit := "", ""
	if place == "comment" {
		comment = clip.Text(text, 1900)
	}
	if place == "edit" {
		edit = text
	}
	s.see(s.askWith(body), chance, comment, edit)
}

// see decides about everything that a run requests, until it ends, and checks the result.
func (s *siege) see(r testkit.Answer, chance *rand.Rand, comment, edit string) testkit.Answer {
	refused := map[string]bool{}
	for range 12 {
		cards := s.pending()[r.RunID]
		if len(cards) == 0 {
			break
		}
		before := maps.Clone(refused) // equal calls in one answer get their cards at the same time
		for _, card := range cards {
			for _, wrong := range CheckCard(card, s.tools[card.Tool], testkit.Address("ana")) {
				s.fail("the card of %s: %s", card.Args, wrong)
			}
			s.Count("cards", 1)
			s.named(card)
			if before[card.ArgsHash] {
				s.fail("Ana is asked again for an action that she rejected: %s", card.Args)
			}
			d := choose(chance, card, edit)
			refused[card.ArgsHash] = d == run.Reject
			s.decide(card, d, comment, edit)
		}
		s.deliver()
	}
	got := s.call("ana", "GET", "/runs/"+r.RunID, nil)
	if got.HTTP != 200 {
		proof.Must(fmt.Errorf("%d %s", got.HTTP, got.Body))
	}
	s.checkEffects()
	s.summary(got)
	return got
}
