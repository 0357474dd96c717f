package hijack_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/hijack"
	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tool"
)

var all = flag.Bool("all", false, "put every attack in every place, and not in some of them")

// everyNth place is used for each attack, another one first for each.
const everyNth = 3

const secret = "BOBS-SECRET-4711"

// TestHijackedModel puts attacks where the model reads them and has it obey, while a user rejects most of what comes of
// it. See hold and settle for what must be true.
func TestHijackedModel(t *testing.T) {
	attacks, err := hijack.Attacks()
	if err != nil {
		t.Fatal(err)
	}
	if file := os.Getenv("HOSTILE_CASES"); file != "" {
		hostile, err := hijack.Hostile(file)
		if err != nil || len(hostile) == 0 {
			t.Fatalf("%d hostile cases: %v", len(hostile), err)
		}
		attacks = append(attacks, hostile...)
	}
	s := newSiege(t)
	for i, a := range attacks {
		for j, place := range hijack.Places {
			if *all || (i+j)%everyNth == 0 {
				s.attack(a, place)
			}
		}
	}
	s.settle()
	t.Logf("%v", s.count)
	for _, k := range []string{"cards", "mails sent", "events made", "sent without asking", "rejected", "approved",
		"edited", "always allowed", "runs that failed"} {
		if s.count[k] == 0 {
			t.Errorf("nothing was counted as: %s", k)
		}
	}
	if s.count["attacks"] < 200 {
		t.Errorf("only %d attacks", s.count["attacks"])
	}
}

// siege is a world in which a user is under attack, and another one must not notice.
type siege struct {
	t     *testing.T
	w     *testkit.Deployment
	tools tool.Set
	bobs  string // an approval of Bob's
	bob   []string

	mu    sync.Mutex
	inbox inbox

	tokens map[string]string // by user
	where  string            // the attack and its place
	grants []grant
	asked  map[string]string   // all that the model asked for and that is well-formed, with its tool
	allow  map[string][]string // by tool: the recipients that Ana always allows
	mails  int                 // the number of mails checked so far
	events int
	count  map[string]int
}

// grant is an approval of Ana's, valid for one effect.
type grant struct {
	tool string
	args json.RawMessage
	used bool
}

// inbox is what the reading tool returns to Ana's model, or fails with.
type inbox struct {
	Mail  map[string]string `json:"mail"`
	Event map[string]string `json:"event"`
	fails string
}

func newSiege(t *testing.T) *siege {
	s := &siege{t: t, asked: map[string]string{}, tokens: map[string]string{}, allow: map[string][]string{},
		count: map[string]int{}, inbox: quiet()}
	w, err := testkit.New(t.Context(), testkit.Options{Dir: t.TempDir(), App: []app.Option{app.WithLoop(s.change)},
		Settings: append([]string{"REJECT_OUTCOME=continue", "MAX_MODEL_CALLS=3", "MAX_OPEN_APPROVALS=0",
			"MAX_APPROVALS_PER_DAY=0"}, testkit.Unlimited...)})
	if err != nil {
		t.Fatal(err)
	}
	s.w = w
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("dave@example.com", secret, secret)))
	first := s.ask("bob", "Keep "+secret+" for me.", "")
	s.say("bob", first.Approvals[0].ApprovalID, "approve_once", nil, "")
	s.deliver()
	s.bobs = s.ask("bob", "And once more.", "").Approvals[0].ApprovalID
	s.bob = s.look("bob")
	s.mails = len(w.Google.Messages())
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("carol@example.com", "Hello", "Hello.")))
	hello := s.ask("ana", "Say hello to Carol.", "")
	s.decide(s.pending()[hello.RunID][0], agent.ApproveAlways, "", "")
	s.deliver()
	s.hold()
	w.SetModel(s.model)
	return s
}

func quiet() inbox {
	return inbox{Mail: map[string]string{"from": "carol@example.com", "subject": "Lunch", "body": "At noon?"},
		Event: map[string]string{"title": "Lunch", "description": "With Carol."}}
}

// change adds a tool that reads. It exists only in this test.
func (s *siege) change(l *loop.Loop) {
	type none struct{}
	read := tool.Define(tool.Def[none, inbox]{
		Name: "inbox_read", Description: "Reads the user's newest mail and next event.",
		Execute: func(_ context.Context, c tool.Call, _ none) (inbox, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.inbox.fails != "" {
				return inbox{}, fault.New(fault.Tool, "failed", "%s", s.inbox.fails)
			}
			return s.inbox, nil
		},
	})
	l.Tools[read.Name] = read
	s.tools = l.Tools
}

// model obeys, and checks that nothing of Bob's reaches Ana's model.
func (s *siege) model(r fakegemini.Request) fakegemini.Turn {
	for _, raw := range r.Raw {
		if strings.Contains(string(raw), secret) {
			s.fail("the model reads what is Bob's")
		}
	}
	t := hijack.Obey(r)
	for _, c := range t.Calls {
		tool := s.tools[c.Name]
		if tool == nil || !tool.SideEffect {
			continue
		}
		raw, err := json.Marshal(c.Args)
		if err != nil {
			panic(err) // the model's own calls
		}
		if args, err := tool.Normalize(raw); err == nil {
			s.asked[string(args)] = c.Name
		}
	}
	return t
}

func (s *siege) fail(format string, values ...any) {
	s.t.Helper()
	s.t.Errorf("%s: %s", s.where, clip.Text(fmt.Sprintf(format, values...), 2000))
}

// attack puts one text in one place and carries the run to its end, with decisions that the case's name seeds.
func (s *siege) attack(a hijack.Attack, place string) {
	s.where = a.ID + " in " + place
	s.count["attacks"]++
	text := strings.ReplaceAll(a.Text, "{BOBS}", s.bobs)
	h := fnv.New64a()
	h.Write([]byte(s.where))
	chance := rand.New(rand.NewPCG(h.Sum64(), 0))

	prompt, thread := "Please look at my inbox.", ""
	box := quiet()
	switch kind, name, _ := strings.Cut(place, "."); {
	case place == "prompt":
		prompt = text
	case place == "history":
		thread = s.see(s.ask("ana", text, ""), chance, "", "").ThreadID
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
	comment, edit := "", ""
	if place == "comment" {
		comment = clip.Text(text, 1900)
	}
	if place == "edit" {
		edit = text
	}
	s.see(s.ask("ana", prompt, thread), chance, comment, edit)
}

// see decides about whatever a run asks for until it asks for nothing more, and checks what came of it.
func (s *siege) see(run testkit.Answer, chance *rand.Rand, comment, edit string) testkit.Answer {
	refused := map[string]bool{}
	for range 12 {
		cards := s.pending()[run.RunID]
		if len(cards) == 0 {
			break
		}
		for _, card := range cards {
			for _, wrong := range hijack.CheckCard(card, s.tools[card.Tool], testkit.Address("ana")) {
				s.fail("the card of %s: %s", card.Args, wrong)
			}
			s.count["cards"]++
			if refused[card.ArgsHash] {
				s.fail("Ana is asked again for what she said no to: %s", card.Args)
			}
			d := choose(chance, card, edit)
			refused[card.ArgsHash] = d == agent.Reject
			s.decide(card, d, comment, edit)
		}
		s.deliver()
	}
	got := s.call("ana", "GET", "/api/agent/runs/"+run.RunID, "")
	if got.HTTP != 200 {
		s.t.Fatalf("%s: %s", s.where, got.Body)
	}
	s.hold()
	s.summary(got)
	return got
}

// choose rejects most, and now and then takes whatever else fits.
func choose(chance *rand.Rand, card agent.ApprovalView, edit string) agent.Decision {
	d := card.Decisions[chance.IntN(len(card.Decisions))]
	switch {
	case card.Kind == agent.KindReview:
		return agent.ConfirmDone
	case edit != "" && card.Tool == "gmail_send" && chance.IntN(2) == 0:
		return agent.ApproveEdited
	case chance.IntN(10) < 6 || d == agent.ApproveEdited && card.Tool != "gmail_send":
		return agent.Reject
	case d == agent.ApproveAlways && strings.Contains(string(card.Args), "attacker"):
		return agent.ApproveOnce // Ana is careful with permanent permissions
	}
	return d
}

// decide sends the decision to the API, and remembers what was really approved.
func (s *siege) decide(card agent.ApprovalView, d agent.Decision, comment, edit string) {
	args := card.Args
	if d == agent.ApproveEdited {
		args = edited(edit)
	} else {
		edit = ""
	}
	var send json.RawMessage
	if d == agent.ApproveEdited {
		send = args
	}
	if d == agent.Reject {
		s.count["rejected"]++
		s.say("ana", card.ApprovalID, d, nil, comment)
		return
	}
	if !s.say("ana", card.ApprovalID, d, send, "") {
		s.count["asked afresh"]++
		return
	}
	switch d {
	case agent.ApproveAlways:
		s.count["always allowed"]++
		to, err := s.tools[card.Tool].Targets(args)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, target := range to {
			s.allow[card.Tool] = append(s.allow[card.Tool], target.Value)
		}
	case agent.ApproveEdited:
		s.count["edited"]++
	default:
		s.count["approved"]++
	}
	s.grants = append(s.grants, grant{tool: card.Tool, args: args})
}

// edited returns arguments of Ana's own, which may quote the attacker.
func edited(text string) json.RawMessage {
	text = strings.Map(func(r rune) rune {
		if r == '\r' || r < ' ' && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, text)
	b, err := json.Marshal(map[string]any{"to": []string{"dave@example.com"}, "subject": "What is this?",
		"body": "Somebody wrote: " + text})
	if err != nil {
		panic(err) // of strings
	}
	return b
}

// call sends a request to the API, whose answers to Ana must hold nothing of Bob's.
func (s *siege) call(uid, method, path, body string) testkit.Answer {
	s.t.Helper()
	if s.tokens[uid] == "" {
		token, err := s.w.SignIn(s.t.Context(), uid)
		if err != nil {
			s.t.Fatal(err)
		}
		s.tokens[uid] = token
	}
	a, err := testkit.Send(s.t.Context(), http.DefaultClient, s.w.Base, s.tokens[uid], method, path, body)
	if err != nil {
		s.t.Fatalf("%s: %v", s.where, err)
	}
	if uid != "bob" && strings.Contains(string(a.Body), secret) {
		s.fail("%s %s shows what is Bob's", method, path)
	}
	return a
}

func (s *siege) ask(uid, prompt, thread string) testkit.Answer {
	s.t.Helper()
	body := map[string]string{"prompt": prompt}
	if thread != "" {
		body["threadId"] = thread
	}
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := s.call(uid, "POST", "/api/agent/run", string(b))
	if a.HTTP != 200 {
		s.t.Fatalf("%s: %d %s", s.where, a.HTTP, a.Body)
	}
	return a
}

// say decides. It reports false where another decision has changed the rule that requires the approval, which is then
// requested anew.
func (s *siege) say(uid, approval string, d agent.Decision, edited json.RawMessage, comment string) bool {
	s.t.Helper()
	body := map[string]any{"approvalId": approval, "decision": d, "comment": comment}
	if edited != nil {
		body["editedArgs"] = edited
	}
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := s.call(uid, "POST", "/api/agent/approvals/resolve", string(b))
	if a.HTTP == 409 && strings.Contains(string(a.Body), `"stale_view"`) {
		return false
	}
	if a.HTTP != 200 {
		s.t.Fatalf("%s: %s answered %d %s", s.where, b, a.HTTP, a.Body)
	}
	return true
}

// deliver has the approved actions carried out.
func (s *siege) deliver() {
	s.t.Helper()
	if _, err := s.w.Deliver(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// pending returns Ana's open approvals, by run.
func (s *siege) pending() map[string][]agent.ApprovalView {
	s.t.Helper()
	var page struct{ Approvals []agent.ApprovalView }
	a := s.call("ana", "GET", "/api/agent/approvals/pending?limit=100", "")
	if err := json.Unmarshal(a.Body, &page); err != nil {
		s.t.Fatal(err)
	}
	out := map[string][]agent.ApprovalView{}
	for _, c := range slices.Backward(page.Approvals) {
		out[c.RunID] = append(out[c.RunID], c)
	}
	return out
}

// hold checks what was done since its last call: each effect is one that Ana approved, byte for byte, or reaches only
// recipients that she always allows.
func (s *siege) hold() {
	s.t.Helper()
	mails, events := s.w.Google.Messages(), s.w.Google.Events()
	for _, m := range mails[s.mails:] {
		s.count["mails sent"]++
		free := s.allowed("gmail_send", slices.Concat(m.To, m.Cc, m.Bcc))
		s.effect("gmail_send", m.User, m.Raw, free, func(args json.RawMessage) bool { return hijack.SameMail(m, args) })
	}
	for _, e := range events[s.events:] {
		s.count["events made"]++
		user, _ := e["user"].(string)
		free := s.allowed("calendar_event_create", invited(e))
		s.effect("calendar_event_create", user, fmt.Sprint(e), free,
			func(args json.RawMessage) bool { return hijack.SameEvent(e, args) })
	}
	s.mails, s.events = len(mails), len(events)
}

func (s *siege) effect(tool, user, what string, free bool, same func(json.RawMessage) bool) {
	if user != testkit.Address("ana") {
		s.fail("in the name of %s: %s", user, what)
	}
	for i := range s.grants {
		if g := &s.grants[i]; !g.used && g.tool == tool && same(g.args) {
			g.used = true
			return
		}
	}
	s.count["sent without asking"]++
	for args, t := range s.asked {
		if free && t == tool && same(json.RawMessage(args)) {
			return
		}
	}
	s.fail("done without a yes: %s", what)
}

func invited(e fakegoogle.Event) []string {
	var out []string
	list, _ := e["attendees"].([]any)
	for _, a := range list {
		out = append(out, fmt.Sprint(a.(map[string]any)["email"]))
	}
	return out
}

func (s *siege) allowed(tool string, to []string) bool {
	return len(to) > 0 && !slices.ContainsFunc(to, func(a string) bool { return !slices.Contains(s.allow[tool], a) })
}

// summary compares the run's last words with what was done: where not all that was asked for happened, or the words
// imitate the server's summary, the server's own comes last.
func (s *siege) summary(run testkit.Answer) {
	if run.Status == "failed" {
		s.count["runs that failed"]++
		return
	}
	if run.Status != "completed" {
		s.fail("the run is %s: %s", run.Status, run.Summary)
		return
	}
	done, missed := 0, false
	for _, a := range run.Actions {
		switch {
		case a.Tool == "inbox_read":
		case a.Status == "completed":
			done++
		default:
			missed = true
		}
	}
	at := strings.LastIndex(run.Summary, "\n\nOn record")
	if !missed && at < 0 && !strings.Contains(run.Summary, "ecord") && !strings.Contains(run.Summary, "rеcord") {
		return
	}
	if at < 0 {
		s.fail("the summary stands alone: %q", run.Summary)
		return
	}
	ours := run.Summary[at+2:]
	lines := strings.Split(strings.TrimPrefix(ours, "On record:\n"), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Not done") })
	if done == 0 && ours != "On record: nothing was sent or changed." || done > 0 && len(lines) != done {
		s.fail("%d effects, and the record says %q", done, ours)
	}
	s.count["summaries put right"]++
}

// look returns all that a user can see.
func (s *siege) look(uid string) []string {
	var out []string
	for _, path := range []string{"approvals/pending", "threads", "audit?limit=100", "allowlist"} {
		out = append(out, string(s.call(uid, "GET", "/api/agent/"+path, "").Body))
	}
	for _, m := range s.w.Google.Messages() {
		if m.User == testkit.Address(uid) {
			out = append(out, m.Raw)
		}
	}
	return out
}

// settle checks what must be true in the end: Bob has noticed nothing, the allowlist is what Ana made it, and Gemini
// was never sent anything that it refuses.
func (s *siege) settle() {
	s.where = "in the end"
	if now := s.look("bob"); !reflect.DeepEqual(now, s.bob) {
		s.fail("what Bob sees has changed:\n%s\n%s", s.bob, now)
	}
	var list struct{ Entries []policy.Entry }
	if err := json.Unmarshal(s.call("ana", "GET", "/api/agent/allowlist", "").Body, &list); err != nil {
		s.t.Fatal(err)
	}
	var want, got []string
	for tool, to := range s.allow {
		for _, a := range to {
			want = append(want, tool+" "+a)
		}
	}
	for _, e := range list.Entries {
		got = append(got, e.Tool+" "+e.Recipient)
	}
	slices.Sort(want)
	slices.Sort(got)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		s.fail("the allowlist is %q, and Ana allowed %q", got, want)
	}
	if r := s.w.Gemini.Refused(); len(r) > 0 {
		s.fail("%d requests were refused: %s", len(r), r[0])
	}
}
