package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// call sends a request as the user.
func (s *env) call(uid, method, path, body string, header ...string) testkit.Answer {
	a, err := s.client(uid)(s.ctx, method, path, body, header...)
	s.must(err)
	return a
}

// get decodes the response to a GET request of the user.
func (s *env) get(uid, path string, into any) {
	s.must(json.Unmarshal(s.call(uid, http.MethodGet, "/api/agent"+path, "").Body, into))
}

// token returns a genuine token of the user.
func (s *env) token(uid string) (string, error) {
	token, err := s.net.sign(userClaims(uid, s.now()))
	if err != nil {
		return "", err
	}
	s.secret(token)
	return token, s.w.SignedIn(s.ctx, uid, token)
}

func (s *env) pushToken(context.Context) (string, error) {
	token, err := s.net.sign(pushClaims(s.now()))
	s.secret(token)
	return token, err
}

func (s *env) secret(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = append(s.secrets, text)
}

// hear records a response and the approvals that it confirms.
func (s *env) hear(uid, what string, a testkit.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, reply{uid, what, a})
	var decided struct{ ApprovalID, Decision string }
	if a.HTTP == http.StatusOK && json.Unmarshal(a.Body, &decided) == nil &&
		strings.HasPrefix(decided.Decision, "approve_") {
		s.approved[decided.ApprovalID] = true
	}
}

// ask starts a run of the user, with the model.
func (s *env) ask(uid, prompt string, model fakegemini.ModelFunc) testkit.Answer {
	s.w.SetModel(model)
	a, err := s.client(uid).Ask(s.ctx, prompt)
	s.must(err)
	return a
}

func (s *env) resolve(uid string, ap testkit.Approval, decision string) testkit.Answer {
	a, err := s.client(uid).Resolve(s.ctx, ap, decision)
	s.must(err)
	return a
}

func (s *env) cancel(uid, runID string) {
	_, err := s.client(uid).Cancel(s.ctx, runID)
	s.must(err)
}

// client returns the user's client. Its responses are recorded.
func (s *env) client(uid string) testkit.Client {
	return func(ctx context.Context, method, path string, body any, header ...string) (testkit.Answer, error) {
		token, err := s.token(uid)
		if err != nil {
			return testkit.Answer{}, err
		}
		a, err := testkit.Connect(nil, s.w.Base, token)(ctx, method, path, body, header...)
		s.hear(uid, method+" "+path, a)
		return a, err
	}
}

// deliver delivers the queue's due messages, as Pub/Sub would.
func (s *env) deliver() error {
	q, ok := s.w.App.Queue.(*queueembedded.Queue)
	if !ok {
		return errors.New("hostile: the deployment has no embedded queue")
	}
	_, err := q.Deliver(s.ctx, queueembedded.HTTPPush(s.w.Base+"/api/agent/resume", s.pushToken, http.DefaultClient))
	return err
}

// sweep makes the scheduler's call and the deliveries that follow from it.
func (s *env) sweep() error {
	token, err := s.pushToken(s.ctx)
	if err != nil {
		return err
	}
	a, err := testkit.Connect(nil, s.w.Base, token).Sweep(s.ctx)
	if err == nil && a.HTTP != http.StatusOK {
		err = fmt.Errorf("the sweep returned status %d", a.HTTP)
	}
	return errors.Join(err, s.deliver())
}

// run reads the run of a response.
func (s *env) run(uid string, a testkit.Answer) testkit.Answer {
	a, err := s.client(uid).Run(s.ctx, a.RunID)
	s.must(err)
	return a
}

// pending returns the user's pending approvals.
func (s *env) pending(uid string) []testkit.Approval {
	a, err := s.client(uid).Pending(s.ctx)
	if s.must(err); a.HTTP != http.StatusOK {
		s.wrong("pending answered %d", a.HTTP)
	}
	return a.Approvals
}
