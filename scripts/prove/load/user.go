package load

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// mailPrompt begins a prompt for an e-mail; the subject follows.
const mailPrompt = "mail "

// answer is the model. It calls gmail_send for a prompt that begins with mailPrompt, and answers every other prompt
// with text.
func answer(r fakegemini.Request) fakegemini.Turn {
	subject, asked := strings.CutPrefix(r.User(), mailPrompt)
	if !asked || r.NoTools || len(r.Responses()) > 0 {
		return fakegemini.Turn{Text: "That is what came of it."}
	}
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "gmail_send",
		Args: testkit.Mail("ana@example.com", subject, "The demo is at ten.")}}}
}

// token returns the user's ID token, which is valid for an hour. It is signed once, when the user's Google account is
// linked.
func (g *env) token(ctx context.Context, uid string) (string, error) {
	g.mu.Lock()
	t := g.tokens[uid]
	g.mu.Unlock()
	if t != "" {
		return t, nil
	}
	t, err := g.users.SignIn(ctx, uid)
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens[uid] = t
	return t, nil
}

// send sends a request once. Any status but 200 is counted by its class and returned as an error.
func (g *env) send(ctx context.Context, uid, method, path string, body any, header ...string) (testkit.Answer, error) {
	token, err := g.token(ctx, uid)
	if err != nil {
		return testkit.Answer{}, err
	}
	start := time.Now()
	a, err := testkit.Connect(nil, g.base, token)(ctx, method, path, body, header...)
	g.answers.since(start)
	if time.Since(start) > answerDue {
		g.slow.add(fmt.Sprintf("%s %s %d", method, route(path), a.HTTP))
	}
	if a.HTTP == http.StatusServiceUnavailable {
		g.refusals.since(start)
	}
	class := fmt.Sprintf("%d %s %s", a.HTTP, a.Error.Class, a.Error.Code)
	switch {
	case err != nil && ctx.Err() != nil:
		return a, err
	case err != nil:
		class = "connection"
	case a.HTTP == http.StatusOK || a.HTTP == http.StatusAccepted:
		return a, nil
	}
	if forNow(a.HTTP) && a.Header.Get("Retry-After") == "" {
		class += withoutRetryAfter
	}
	g.errors.add(class)
	return a, fmt.Errorf("%s %s: %s: %v", method, path, class, err)
}

const withoutRetryAfter = " without Retry-After"

// forNow reports whether a status means that the same request may be answered later.
func forNow(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// refusalForNow reports whether a class of errors is a refusal that says when to try again.
func refusalForNow(class string) bool {
	status, _, _ := strings.Cut(class, " ")
	n, _ := strconv.Atoi(status) // 0 for a broken connection
	return forNow(n) && !strings.HasSuffix(class, withoutRetryAfter)
}

// answerDue is the time within which a request must be answered, even while the store is down.
const answerDue = 10 * time.Second

// route returns the path without its id.
func route(path string) string {
	if i := strings.Index(path, "/runs/"); i >= 0 {
		return path[:i] + "/runs/{runId}"
	}
	return path
}

// insist retries a request after a broken connection or a temporary refusal, as a good client does: at the time in the
// answer.
func (g *env) insist(ctx context.Context, uid, method, path string, body any, header ...string) (testkit.Answer,
	error) {
	for {
		a, err := g.send(ctx, uid, method, path, body, header...)
		if err == nil || a.HTTP != 0 && a.HTTP < 500 && a.HTTP != http.StatusTooManyRequests {
			return a, err
		}
		if stopped := wait.For(ctx, later(a)); stopped != nil {
			return a, err
		}
	}
}

// later returns how long to wait before a request is sent again: the time in the answer, but at most a second, because
// a measurement is short.
func later(a testkit.Answer) time.Duration {
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil {
		return 200 * time.Millisecond
	}
	return min(time.Duration(seconds)*time.Second, time.Second)
}

// once is a client that sends each request once (send).
func (g *env) once(uid string) testkit.Client {
	return func(ctx context.Context, method, path string, body any, header ...string) (testkit.Answer, error) {
		return g.send(ctx, uid, method, path, body, header...)
	}
}

// patient is a client that retries (insist).
func (g *env) patient(uid string) testkit.Client {
	return func(ctx context.Context, method, path string, body any, header ...string) (testkit.Answer, error) {
		return g.insist(ctx, uid, method, path, body, header...)
	}
}

// ask starts a run with an Idempotency-Key, so that it may be retried.
func (g *env) ask(ctx context.Context, uid, prompt, key string) (testkit.Answer, error) {
	return g.patient(uid).Ask(ctx, prompt, "Idempotency-Key", key)
}

// plain requests text once, and returns the time that this took.
func (g *env) plain(ctx context.Context, uid string) (time.Duration, error) {
	start := time.Now()
	a, err := g.once(uid).Ask(ctx, "say hello")
	took := time.Since(start)
	if err != nil {
		return took, err
	}
	g.ledger.asked(a.RunID, "")
	if a.Status != "completed" {
		return took, fmt.Errorf("a plain run is %s: %s", a.Status, a.Message)
	}
	return took, nil
}

// mail requests an e-mail, and returns its subject and the run with its waiting approval.
func (g *env) mail(ctx context.Context, uid string) (subject string, a testkit.Answer, err error) {
	subject = g.ledger.subject()
	if a, err = g.ask(ctx, uid, mailPrompt+subject, subject); err != nil {
		return subject, a, err
	}
	g.ledger.asked(a.RunID, subject)
	if !waiting(a) {
		a, err = g.until(ctx, uid, a.RunID, func(a testkit.Answer) bool { return waiting(a) || ended(a) })
	}
	if err == nil && !waiting(a) {
		err = fmt.Errorf("run %s is %s instead of waiting: %s", a.RunID, a.Status, a.Message)
	}
	return subject, a, err
}

func waiting(a testkit.Answer) bool {
	return a.Status == "awaiting_confirmation" && len(a.Approvals) > 0
}
func ended(a testkit.Answer) bool { return a.Status == "completed" || a.Status == "failed" }

// decide answers an approval.
func (g *env) decide(ctx context.Context, uid string, p testkit.Approval, decision string, header ...string) (
	testkit.Answer, error) {
	return g.patient(uid).Resolve(ctx, p, decision, header...)
}

// until reads a run after each acknowledged message about it, and at intervals, until enough reports true.
func (g *env) until(ctx context.Context, uid, runID string, enough func(testkit.Answer) bool) (testkit.Answer, error) {
	for tick := 250 * time.Millisecond; ; tick = min(2*tick, 4*time.Second) {
		taken := g.relay.next(runID)
		a, err := g.once(uid).Run(ctx, runID)
		if err == nil && enough(a) || ctx.Err() != nil {
			return a, err
		}
		select {
		case <-taken:
		case <-time.After(tick):
		case <-ctx.Done():
		}
	}
}

// roundTrip plays an e-mail from the prompt to the end of its run. whole and decided may be nil.
func (g *env) roundTrip(ctx context.Context, uid string, whole, decided *series) error {
	start := time.Now()
	subject, a, err := g.mail(ctx, uid)
	if err != nil {
		return err
	}
	approved := time.Now()
	g.ledger.approved(subject)
	var header []string
	if g.working {
		header = testkit.Wait
	}
	if a, err = g.decide(ctx, uid, a.Approvals[0], "approve_once", header...); err != nil {
		return err
	}
	if !ended(a) {
		a, err = g.finish(ctx, uid, a.RunID, subject)
	}
	if err != nil {
		return err
	}
	if decided != nil {
		decided.since(approved)
		whole.since(start)
	}
	return nil
}

// finish waits for the end of a run with an approved e-mail. It answers a review as the user, who knows whether the
// e-mail is in the mailbox, and approves the new action that start_new creates.
func (g *env) finish(ctx context.Context, uid, runID, subject string) (testkit.Answer, error) {
	for {
		a, err := g.until(ctx, uid, runID, func(a testkit.Answer) bool { return ended(a) || waiting(a) })
		if err != nil || ended(a) {
			return a, err
		}
		decision := g.answerTo(a.Approvals[0], subject)
		if b, err := g.decide(ctx, uid, a.Approvals[0], decision); err != nil && b.HTTP != http.StatusConflict {
			return b, err
		}
	}
}

// answerTo returns the decision about the approval of an e-mail that the user wants. It counts the reviews.
func (g *env) answerTo(p testkit.Approval, subject string) string {
	if p.Kind != "review" {
		return "approve_once"
	}
	decision := "start_new"
	if g.ledger.sent(subject) > 0 {
		decision = "confirm_done"
	}
	g.reviews.add(decision)
	return decision
}
