package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit"
)

// Server is a running Countersign, as its users reach it.
type Server interface {
	URL() string
	// Token returns an ID token of a user. Different names are different users.
	Token(ctx context.Context, user string) (string, error)
}

// Mailbox is a Server whose sent e-mail can be read, as on a local server.
type Mailbox interface {
	Mails(ctx context.Context) ([]Mail, error)
}

// Repository is a Server whose users act at a local GitHub with the repository [DemoRepository].
type Repository interface {
	RepoURL() string // the repository's URL for plans
}

// Mail is a sent e-mail.
type Mail struct {
	User    string // the sending account: the user's name or address
	To      []string
	Subject string
	Text    string
}

// devServer is scripts/dev, which signs in every user and shows its mailbox.
type devServer string

// URL implements Server.
func (d devServer) URL() string { return string(d) }

// Token implements Server.
func (d devServer) Token(ctx context.Context, user string) (string, error) {
	var got struct{ Token string }
	err := fetch(ctx, http.MethodPost, string(d)+"/dev/token",
		fmt.Sprintf(`{"uid":%q,"email":"%s@example.com"}`, user, user), &got)
	return got.Token, err
}

// Mails implements Mailbox.
func (d devServer) Mails(ctx context.Context) ([]Mail, error) {
	var got struct{ Messages []Mail }
	err := fetch(ctx, http.MethodGet, string(d)+"/dev/mailbox", "", &got)
	return got.Messages, err
}

// RepoURL implements Repository.
func (d devServer) RepoURL() string { return string(d) + "/dev/github/" + DemoRepository }

// deployed is a Countersign at any URL, with tokens of two of its users. It cannot sign in other users, and shows no
// mailbox.
type deployed struct{ base, ana, eve string }

// URL implements Server.
func (d deployed) URL() string { return d.base }

// errAlone means that a case needs a second user.
var errAlone = errors.New("no ID token of a second user: set -token2")

// Token implements Server. Every name except the second user's means the first user.
func (d deployed) Token(_ context.Context, user string) (string, error) {
	token := d.ana
	if strings.HasPrefix(user, Second) {
		token = d.eve
	}
	switch {
	case d.ana == "":
		return "", errors.New("no ID token of a user: set -token")
	case token == "":
		return "", errAlone
	}
	return token, nil
}

// find recognizes a local server by its mailbox.
func find(ctx context.Context, base, ana, eve string) Server {
	local := devServer(base)
	if _, err := local.Mails(ctx); err == nil && ana == "" {
		return local
	}
	return deployed{base, ana, eve}
}

// Healthy returns an error unless Countersign runs at the URL.
func Healthy(ctx context.Context, url string) error {
	var h struct{ OK bool }
	if err := fetch(ctx, http.MethodGet, url+"/health", "", &h); err != nil {
		return err
	}
	if !h.OK {
		return fmt.Errorf("%s is not healthy", url)
	}
	return nil
}

// fetch reads JSON that only a local server serves.
func fetch(ctx context.Context, method, url, body string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, url, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(into)
}

// The two users of a case.
const (
	First  = "ana"
	Second = "eve"
)

// session is one case on a server. If the server can sign in any user, no other case has the same users.
type session struct {
	Server
	ctx  context.Context
	name string // the case's name, which is part of its users' names and of its e-mails' subjects
}

func (s *session) user(name string) string { return name + "-" + s.name }

// Recipient receives the e-mails. Even a real e-mail reaches no one, because example.com accepts none.
const Recipient = "bob@example.com"

// as returns the client of a user.
func (s *session) as(user string) testkit.Client {
	return func(ctx context.Context, method, path string, body any, header ...string) (testkit.Answer, error) {
		token, err := s.Token(ctx, s.user(user))
		if err != nil {
			return testkit.Answer{}, err
		}
		return testkit.Connect(nil, s.URL(), token)(ctx, method, path, body, header...)
	}
}

// got returns the response, or ends the case if there is an error.
func got(a testkit.Answer, err error) testkit.Answer {
	proof.Must(err)
	return a
}

// call sends a request as the user.
func (s *session) call(user, method, path, body string) testkit.Answer {
	return got(s.as(user)(s.ctx, method, "/api/agent"+path, body))
}

// get decodes the response to a GET request of the user.
func (s *session) get(user, path string, into any) {
	proof.Must(json.Unmarshal(s.call(user, http.MethodGet, path, "").Body, into))
}

// Object returns a JSON object of names and values.
func Object(pairs ...any) string {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // the values are only strings and valid raw JSON
	}
	return string(b)
}

// subject returns the subject of the case's n-th mail.
func (s *session) subject(n int) string { return fmt.Sprintf("Gauntlet %s mail %d", s.name, n) }

// ask requests an e-mail as the user, and returns the run and its pending approval.
func (s *session) ask(user string, n int) (testkit.Answer, testkit.Approval) {
	prompt := fmt.Sprintf("email %s subject '%s' saying 'hello'", Recipient, s.subject(n))
	run := got(s.as(user).Ask(s.ctx, prompt))
	if len(run.Approvals) != 1 {
		proof.Must(fmt.Errorf("requested an e-mail, got %d %s", run.HTTP, run.Body))
	}
	return run, run.Approvals[0]
}

// resolve decides about an approval, and retries while the server is temporarily unavailable.
func (s *session) resolve(user string, a testkit.Approval, decision string) testkit.Answer {
	for {
		answer := got(s.as(user).Resolve(s.ctx, a, decision))
		if answer.HTTP != http.StatusServiceUnavailable {
			return answer
		}
		if err := wait.For(s.ctx, pause); err != nil {
			proof.Must(fmt.Errorf("%w: the last answer was %d %s", err, answer.HTTP, answer.Body))
		}
	}
}

// approve approves an approval, which must be accepted.
func (s *session) approve(user string, a testkit.Approval) {
	if answer := s.resolve(user, a, "approve_once"); answer.HTTP != http.StatusOK {
		proof.Must(fmt.Errorf("the approval returned %d %s", answer.HTTP, answer.Body))
	}
}

// pause is the wait before an interrupted stream of events is followed again.
const pause = 50 * time.Millisecond

// ended waits for the end of a run.
func (s *session) ended(user, runID string) testkit.Answer {
	for {
		run := got(s.as(user).Ended(s.ctx, runID))
		if run.Status == "completed" || run.Status == "failed" || run.HTTP != http.StatusOK {
			return run
		}
		if err := wait.For(s.ctx, pause); err != nil {
			proof.Must(fmt.Errorf("the run %s is still %s: %w", runID, run.Status, err))
		}
	}
}

// sent returns the case's e-mails.
func (s *session) sent() (own []Mail) {
	box, ok := s.Server.(Mailbox)
	if !ok {
		proof.Must(fmt.Errorf("the mailbox of %s cannot be seen", s.URL()))
	}
	all, err := box.Mails(s.ctx)
	proof.Must(err)
	for _, m := range all {
		if strings.HasPrefix(m.Subject, "Gauntlet "+s.name+" ") {
			own = append(own, m)
		}
	}
	return own
}
