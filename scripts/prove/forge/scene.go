package forge

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/enrols"
	"github.com/countersign-run/countersign/shared/app/signs"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakekms"
)

// world is a deployment with an attacker.
type world struct {
	*testkit.Deployment
	ctx     context.Context
	options testkit.Options

	machine *machine // nil: OpenSSH's server is not installed

	// with Firestore
	project string
	keys    *fakekms.Service
}

func open(ctx context.Context, store, dir string) (w *world, err error) {
	w = &world{ctx: ctx, options: testkit.Options{Dir: dir, Settings: testkit.Unlimited}}
	if store == "firestore" {
		if err := w.onFirestore(); err != nil {
			return nil, err
		}
	}
	rules, err := strong(dir)
	if err != nil {
		return nil, err
	}
	w.options.Settings = append(slices.Clone(w.options.Settings), append(rules, "ALLOWED_ORIGINS="+testkit.Console)...)
	if w.machine, err = newMachine(ctx, dir); err != nil {
		return nil, err
	}
	if w.machine != nil {
		w.options.Settings = append(slices.Clone(w.options.Settings), "TERMINAL=on",
			"TERMINAL_HOSTS="+w.machine.Addr+","+w.machine.relay)
	}
	w.Deployment, err = testkit.New(ctx, w.options)
	return w, err
}

// onFirestore makes the deployment use a new project of the emulator, and a key of Cloud KMS.
func (w *world) onFirestore() error {
	var err error
	if w.keys, err = fakekms.Start([]byte(rand.Text() + rand.Text())[:32]); err != nil {
		return err
	}
	public, err := decision.FormatKey(w.keys.Public())
	w.project = "demo-" + strings.ToLower(rand.Text()[:20])
	w.options.Settings = append([]string{"STORE=firestore", "QUEUE=embedded", "GOOGLE_CLOUD_PROJECT=" + w.project,
		"FIRESTORE_EMULATOR_HOST=" + os.Getenv("FIRESTORE_EMULATOR_HOST"), "DECISION_KMS_KEY=" + fakekms.Version,
		"DECISION_PUBLIC_KEYS=" + public, "ENROLMENT_KMS_KEY=" + fakekms.Version,
		"ENROLMENT_PUBLIC_KEYS=" + public}, testkit.Unlimited...)
	w.options.App = []app.Option{app.Replace(signs.With(w.keys.Client()...), enrols.With(w.keys.Client()...))}
	return err
}

// Close ends the deployment and its key service.
func (w *world) Close() error {
	if w.keys != nil {
		defer w.keys.Close()
	}
	if w.machine != nil {
		defer w.machine.close()
	}
	return w.Deployment.Close()
}

// store opens the deployment's store.
func (w *world) store() (store.Store, error) {
	if w.project != "" {
		return firestore.Open(w.ctx, w.project, "(default)")
	}
	return embedded.Open(w.options.Dir, time.Now)
}

// scene is one user's run that is attacked.
type scene struct {
	*world
	uid     string
	stopped bool                // the attack happens while the server is stopped
	asked   testkit.Answer      // the run that waited, with its card
	st      store.Store         // the store, open during an attack
	sig     *decision.Signature // a signature that the attacker has found
	found   json.RawMessage     // a document that the attacker has copied

	assertion *passkey.Assertion // a passkey's confirmation that the attacker has copied

	host, terminal string // the user's
}

// bob is the recipient of the e-mail on the card.
const bob = "bob@example.com"

// ask starts a run that wants to send an e-mail.
func (s *scene) ask(uid, to, words string) testkit.Answer {
	s.SetModel(testkit.Wants("gmail_send", testkit.Mail(to, words, words)))
	return begun(s.Ask(s.ctx, uid, "Send an e-mail to "+to+": "+words))
}

// begun returns the response about a run that has begun.
func begun(got testkit.Answer, err error) testkit.Answer {
	proof.Must(err)
	if got.HTTP != http.StatusOK {
		proof.Must(fmt.Errorf("the run began with %d: %s", got.HTTP, got.Body))
	}
	return got
}

// decide makes a decision about the only card of the run.
func (s *scene) decide(uid string, r testkit.Answer, decision string, undo int) {
	if len(r.Approvals) != 1 {
		proof.Must(fmt.Errorf("%d cards wait: %s", len(r.Approvals), r.Body))
	}
	c, err := s.As(s.ctx, uid)
	proof.Must(err)
	a, err := c.Hold(s.ctx, r.Approvals[0], decision, undo)
	proof.Must(err)
	if a.HTTP != http.StatusOK {
		proof.Must(fmt.Errorf("%s was answered with %d: %s", decision, a.HTTP, a.Body))
	}
}

// settle lets the server continue the run, and all other runs in the queue.
func (s *scene) settle(r testkit.Answer) {
	proof.Must(s.App.Queue.Resume(s.ctx, queue.Message{RunID: r.RunID, UID: s.uid, ThreadID: r.ThreadID}))
	for range 20 {
		n, err := s.Deliver(s.ctx)
		proof.Must(err)
		if n == 0 {
			return
		}
	}
	proof.Must(errors.New("the queue does not become empty"))
}

// play brings the user into the attack's situation, attacks, and returns how the server reported the attack.
func (s *scene) play(a attack) string {
	begin := a.begin
	if begin == nil {
		begin = waits
	}
	begin(s)
	before := s.effects()
	s.attack(a.write)
	if a.then != nil {
		a.then(s)
	}
	s.settle(s.asked)
	if n := s.effects() - before; n != 0 {
		proof.Must(fmt.Errorf("%d effects without a decision", n))
	}
	noticed := s.noticed()
	if noticed == "" {
		proof.Must(fmt.Errorf("nothing noticed it: %s", s.of(s.asked.RunID).Body))
	}
	return noticed
}

// effects returns the number of the user's effects in both of their accounts, and of the commands of their run that a
// host executed.
func (s *scene) effects() int {
	n := len(s.EffectsOf(s.uid)) + len(s.EffectsOf(earlier(s.uid)))
	if s.terminal == "" {
		return n
	}
	for _, a := range s.of(s.asked.RunID).Actions {
		if a.Tool == "run_command" && a.Status == "completed" {
			n++
		}
	}
	return n
}

// attack opens the store as the attacker, and writes.
func (s *scene) attack(write func(*scene)) {
	if !s.stopped {
		s.st = s.App.Store
		write(s)
		return
	}
	proof.Must(s.Stop())
	st, err := s.store()
	proof.Must(err)
	s.st = st
	failed := proof.Attempt(func() { write(s) })
	proof.Must(errors.Join(failed, st.Close(), s.Start(s.ctx, s.options)))
}

// noticed returns the server's report that the run's documents differ from the decisions of its user, or "".
func (s *scene) noticed() string {
	q := document.AuditOfChain(s.asked.RunID, 100)
	for d, err := range document.All(s.ctx, s.App.Store, q) {
		proof.Must(err)
		e, err := audit.Decode(d.Data)
		proof.Must(err)
		if e.Kind == audit.Refused && e.Rule != "" {
			return "the audit log has " + e.Rule
		}
	}
	now := s.of(s.asked.RunID)
	refusals := []string{"integrity", "stale_view", "forged_decision", "denied", "no_such_tool", "token_key",
		"reauth_required", "terminal_closed"}
	for _, a := range now.Actions {
		if slices.Contains(refusals, a.ErrorReason) {
			return "the action failed with " + a.ErrorReason
		}
	}
	if len(now.Approvals) > 0 {
		return "the user is asked"
	}
	return ""
}

// of reads the user's run. If the run was given to another user, it is read as that user.
func (s *scene) of(runID string) testkit.Answer {
	var r run.Run
	docs, err := s.App.Store.Get(s.ctx, document.RunPath(runID))
	proof.Must(err)
	proof.Must(document.Decode(docs[0], &r))
	a, err := s.Run(s.ctx, r.UID, runID)
	proof.Must(err)
	return a
}

// change changes a document as the attacker.
func change[T any](s *scene, path string, how func(*T)) {
	docs, err := s.st.Get(s.ctx, path)
	proof.Must(err)
	v := new(T)
	proof.Must(document.Decode(docs[0], v))
	how(v)
	data, err := json.Marshal(v)
	proof.Must(err)
	write := store.Update(path, docs[0].Version, docs[0].Fields, data)
	if !docs[0].Exists() {
		write = store.Create(path, map[string]any{}, data)
	}
	_, err = s.st.Commit(s.ctx, write)
	proof.Must(err)
}

// run changes the run that is attacked.
func (s *scene) run(how func(*run.Run)) { change(s, document.RunPath(s.asked.RunID), how) }

// user changes the user's document.
func (s *scene) user(how func(*run.User)) { change(s, document.UserPath(s.uid), how) }

// add adds an event to the run.
func add(r *run.Run, e run.Event) {
	r.Log.Count++
	e.Seq, e.At = r.Log.Count, time.Now()
	r.Log.Tail = append(r.Log.Tail, e)
}

// proposed returns the proposal of the run's call.
func proposed(r *run.Run) *run.ProposedCall {
	i := slices.IndexFunc(r.Log.Tail, func(e run.Event) bool { return e.Proposed != nil })
	return r.Log.Tail[i].Proposed
}

// decided returns the run's decision.
func decided(r *run.Run) *run.Decided {
	i := slices.IndexFunc(r.Log.Tail, func(e run.Event) bool { return e.Decided != nil })
	return r.Log.Tail[i].Decided
}
