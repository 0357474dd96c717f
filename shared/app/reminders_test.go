package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/queue"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/notify/reminder"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/mailserver"
)

// mailed is a deployment that sends e-mails about waiting approvals, with a clock that the test advances.
type mailed struct {
	*proved
	*testing.T
	server *mailserver.Server
	later  *atomic.Int64
}

func newMailed(t *testing.T) mailed {
	s := &mailserver.Server{User: "countersign", Password: "CANARY-password"}
	if err := s.Start(nil, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	later := &atomic.Int64{}
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	cloud, err := testkit.NewCloud()
	if err != nil {
		t.Fatal(err)
	}
	w := &proved{&testkit.Deployment{Cloud: cloud, Logs: &testkit.Log{}}, t}
	o := testkit.Options{Dir: t.TempDir(), App: []app.Option{app.WithClock(now)}, Settings: []string{"NOTIFY=mail",
		"NOTIFY_FROM=countersign@example.com", "SMTP_URL=smtp://countersign:CANARY-password@" + s.Address(),
		"MCP_ISSUER=" + cloud.Issuer.URL()}}
	if err := w.Start(t.Context(), o); err != nil {
		t.Fatal(errors.Join(err, cloud.Close()))
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	w.mail()
	return mailed{w, t, s, later}
}

// as returns the client of a user whose token has these claims and is still valid the next day.
func (w mailed) as(uid, email string, verified bool) testkit.Client {
	w.T.Helper()
	now := time.Now()
	token, err := w.Issuer.Sign(map[string]any{"iss": w.Issuer.URL(), "aud": testkit.Audience, "sub": uid,
		"email": email, "email_verified": verified, "iat": now.Unix(), "auth_time": now.Unix(),
		"exp": now.Add(24 * time.Hour).Unix()})
	if err == nil {
		err = w.SignedIn(w.Context(), uid, token)
	}
	if err != nil {
		w.T.Fatal(err)
	}
	return testkit.Connect(nil, w.Base, token)
}

// asks requests an e-mail, which then waits.
func (w mailed) asks(as testkit.Client) testkit.Answer {
	w.T.Helper()
	a, err := as(w.Context(), "POST", "/api/agent/run", `{"prompt":"tell CANARY-bob","timeZone":"Asia/Kolkata"}`)
	if err != nil || len(a.Approvals) != 1 {
		w.T.Fatalf("%v: %d %s; want len(a.Approvals) 1", err, a.HTTP, a.Body)
	}
	return a
}

// pass lets time pass, and runs the sweep and the queue.
func (w mailed) pass(d time.Duration) {
	w.T.Helper()
	w.later.Add(int64(d))
	w.sweep()
}

func (w mailed) sweep() {
	w.T.Helper()
	if _, err := w.App.API.Loop.Sweep(w.Context()); err != nil {
		w.T.Fatal(err)
	}
	q := w.App.Queue.(*queueembedded.Queue)
	push := func(ctx context.Context, envelope []byte) error {
		d, err := queue.ParsePush(envelope, "")
		if err != nil {
			return err
		}
		return w.App.API.Move(ctx, d)
	}
	if _, err := q.Deliver(w.Context(), push); err != nil {
		w.T.Fatal(err)
	}
}

// got expects so many e-mails, and returns the last one.
func (w mailed) got(when string, n int) mailserver.Mail {
	w.T.Helper()
	all := w.server.Mails()
	if len(all) != n {
		w.T.Fatalf("%s: %d e-mails, want %d\n%s", when, len(all), n, w.Logs.String())
	}
	if n == 0 {
		return mailserver.Mail{}
	}
	return all[n-1]
}

// due returns when the run must be looked at again.
func (w mailed) due(runID string) time.Time {
	w.T.Helper()
	docs, err := w.App.Store.Get(w.Context(), document.RunPath(runID))
	if err != nil {
		w.T.Fatal(err)
	}
	return document.RunFieldsOf(docs[0]).Due
}

// TestReminder checks that an approval older than five minutes is mailed once, without content, in the user's time
// zone.
func TestReminder(t *testing.T) {
	w := newMailed(t)
	ana := w.as("ana", "Ana@Example.com", true)
	asked := w.asks(ana)
	w.pass(4 * time.Minute)
	w.got("too early", 0)
	w.pass(61 * time.Second)
	m := w.got("after five minutes", 1)
	if m.From != "countersign@example.com" || m.To != "Ana@example.com" || m.User != "countersign" {
		t.Errorf("from %s to %s by %s", m.From, m.To, m.User)
	}
	for name, want := range map[string]string{"To": "Ana@example.com", "Subject": "Approve an e-mail to one person?",
		"From": "Countersign <countersign@example.com>", "Auto-Submitted": "auto-generated"} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if _, err := m.Header.Date(); err != nil || !strings.HasSuffix(m.Header.Get("Message-Id"), "@example.com>") {
		t.Errorf("%v: %s; want m.Header.Get(\"Message-Id\") that ends with “@example.com>”", err, m.Raw)
	}
	var waiting run.Approval
	if _, err := document.Get(t.Context(), w.App.Store, document.ApprovalPath(asked.Approvals[0].ApprovalID),
		&waiting); err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n  " + w.Base + "/#/t/" + asked.ThreadID + "\n", "\n" + w.Base + "/#/inbox\n",
		"Asked on " + waiting.RequestedAt.In(zone).Format("Mon 2 Jan, 15:04 MST") + ", expires on "} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("%q is not in\n%s", want, m.Text)
		}
	}
	for _, no := range []string{"CANARY", "bob@", waiting.ID} {
		if strings.Contains(m.Raw, no) {
			t.Errorf("%s is in\n%s", no, m.Raw)
		}
	}
	for _, no := range []string{"ana@", "Ana@", "CANARY-password"} {
		if strings.Contains(w.Logs.String(), no) {
			t.Errorf("the log has %s", no)
		}
	}
	w.pass(2 * time.Hour)
	w.got("it waits on", 1)
	if due := w.due(asked.RunID); due.Before(waiting.ExpiresAt.Add(-time.Second)) {
		t.Errorf("the run is due at %v and not when the approval ends, at %v", due, waiting.ExpiresAt)
	}
}

// TestReminderOfTwoCards checks that one e-mail covers two cards, that the next comes an hour later, and that no other
// user gets it.
func TestReminderOfTwoCards(t *testing.T) {
	w := newMailed(t)
	ana, bob := w.as("ana", "ana@example.com", true), w.as("bob", "bob.own@example.com", true)
	first, second := w.asks(ana), w.asks(ana)
	other := w.asks(bob)
	w.later.Add(int64(3 * time.Minute))
	third := w.asks(ana)
	w.pass(2*time.Minute + time.Second)
	w.got("two people", 2)
	for _, m := range w.server.Mails() {
		hers := m.To == "ana@example.com"
		for _, a := range []testkit.Answer{first, second, third} {
			if strings.Contains(m.Text, a.ThreadID) != hers {
				t.Errorf("%s gets\n%s", m.To, m.Text)
			}
		}
		if strings.Contains(m.Text, other.ThreadID) == hers {
			t.Errorf("%s gets\n%s", m.To, m.Text)
		}
		if hers && m.Header.Get("Subject") != "3 requests need your decision" {
			t.Errorf("it is called %s", m.Header.Get("Subject"))
		}
	}
	fourth := w.asks(ana)
	w.pass(10 * time.Minute)
	w.pass(40 * time.Minute)
	w.got("within the hour", 2)
	w.pass(11 * time.Minute)
	m := w.got("after the hour", 3)
	if !strings.Contains(m.Text, fourth.ThreadID) || strings.Contains(m.Text, first.ThreadID) {
		t.Errorf("what was told is told again, or what is new is not:\n%s", m.Text)
	}
}

// TestReminderOfAnAgent checks that a user who asks only through agents gets the e-mail at the address from when they
// created the token, or at the verified address in the access token.
func TestReminderOfAnAgent(t *testing.T) {
	w := newMailed(t)
	const mail = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gmail_send","arguments":` +
		`{"to":["bob@example.com"],"subject":"CANARY-subject","body":"b"}}}`
	ask := func(whose, token string) {
		t.Helper()
		if a := w.proved.asks(token, mail); !strings.Contains(string(a.Body), "awaiting_confirmation") {
			t.Fatalf("%s: %d %s; want a.Body with “awaiting_confirmation”", whose, a.HTTP, a.Body)
		}
	}
	given := func(as testkit.Client) string {
		t.Helper()
		a, err := as(t.Context(), "POST", "/api/agent/tokens", `{"name":"My editor"}`)
		var made struct{ Token string }
		if err == nil {
			err = json.Unmarshal(a.Body, &made)
		}
		if err != nil || made.Token == "" {
			t.Fatalf("%v: %d %s", err, a.HTTP, a.Body)
		}
		return made.Token
	}
	access := func(uid, email string, verified bool) string {
		t.Helper()
		w.as(uid, "", false) // links the user's account as a side effect
		return w.access(map[string]any{"sub": uid, "email": email, "email_verified": verified})
	}
	ask("a token made with an address", given(w.as("ana", "ana@example.com", true)))
	ask("a token made without", given(w.as("bea", "bea@example.com", false)))
	ask("an access token with an address", access("cleo", "cleo@example.com", true))
	ask("an access token without", access("dora", "dora@example.com", false))
	w.asks(w.as("emil", "emil@example.com", true))
	ask("an access token that knows less than is known", access("emil", "emil@else.example.com", false))
	w.pass(6 * time.Minute)
	got := map[string]string{}
	for _, m := range w.server.Mails() {
		got[m.To] = m.Header.Get("Subject")
	}
	want := map[string]string{"ana@example.com": "Approve an e-mail to one person?",
		"cleo@example.com": "Approve an e-mail to one person?", "emil@example.com": "2 requests need your decision"}
	if !maps.Equal(got, want) {
		t.Errorf("mailed:\n%v, want\n%v\n%s", got, want, w.Logs.String())
	}
}

// TestReminderNotSent checks that no e-mail is sent about decided approvals, to users without a verified address, or to
// users who turned it off.
func TestReminderNotSent(t *testing.T) {
	w := newMailed(t)
	ana, verified := w.as("ana", "ana@example.com", false), w.as("ana", "ana@example.com", true)
	const path = "/api/agent/reminders"
	mail := func(as testkit.Client, method, body, want string) {
		t.Helper()
		a, err := as(t.Context(), method, path, body)
		if err != nil || strings.TrimSpace(string(a.Body)) != want {
			t.Errorf("%v: %d %s, want %s", err, a.HTTP, a.Body, want)
		}
	}
	w.asks(ana)
	mail(ana, "GET", "", `{"ok":true,"mail":true}`)
	w.pass(10 * time.Minute)
	w.got("not verified", 0)

	decided := w.asks(verified)
	if a, err := verified.Resolve(t.Context(), decided.Approvals[0], "reject"); err != nil || a.HTTP != 200 {
		t.Fatalf("%v %s; want a.HTTP 200", err, a.Body)
	}
	mail(verified, "GET", "", `{"ok":true,"mail":true,"address":"ana@example.com"}`)
	w.asks(w.as("ana", "ana@new.example.com", false)) // formerly her address
	w.pass(10 * time.Minute)
	w.got("decided, and no more verified", 0)

	w.asks(verified)
	mail(verified, "PATCH", `{"mail":false}`, `{"ok":true,"mail":false,"address":"ana@example.com"}`)
	w.pass(10 * time.Minute)
	w.got("not wanted", 0)
	mail(verified, "PATCH", `{"mail":true}`, `{"ok":true,"mail":true,"address":"ana@example.com"}`)
	w.asks(verified)
	if _, err := w.App.API.Records.SetDisabled(t.Context(), "ana", true); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Minute)
	w.got("locked out", 0)
	if _, err := w.App.API.Records.SetDisabled(t.Context(), "ana", false); err != nil {
		t.Fatal(err)
	}
	w.asks(verified)
	w.pass(6 * time.Minute)
	w.got("let in again", 1)
}

// late is a process to which something happens before it records that it has sent an e-mail.
type late struct {
	reminder.Kept
	meanwhile func()
}

func (l late) Reminded(ctx context.Context, uid string, upto time.Time) error {
	l.meanwhile()
	return l.Kept.Reminded(ctx, uid, upto)
}

// TestReminderOfALateProcess pauses a process before it records its e-mail, until another process has sent one about
// newer approvals. Those are not mailed again.
func TestReminderOfALateProcess(t *testing.T) {
	w := newMailed(t)
	ana := w.as("ana", "ana@example.com", true)
	w.asks(ana)
	w.later.Add(int64(6 * time.Minute))
	first := w.App.API.Loop.Reminders.(*reminder.Reminders)
	stopped, second := *first, testkit.Answer{}
	stopped.Kept = late{first.Kept, func() {
		second = w.asks(ana)
		w.pass(6 * time.Minute)
		w.got("another one mails", 2)
	}}
	if err := stopped.Remind(t.Context(), "ana", w.App.API.Loop.Reminding); err != nil {
		t.Fatal(err)
	}
	third := w.asks(ana)
	w.pass(2 * time.Hour)
	m := w.got("the first one has gone on", 3)
	if !strings.Contains(m.Text, third.ThreadID) || strings.Contains(m.Text, second.ThreadID) {
		t.Errorf("what was told is told again, or what is new is not:\n%s", m.Text)
	}
}

// unreachable is a topic that fails.
type unreachable struct{}

func (unreachable) Publish(context.Context, ...event.Event) error {
	return errors.New("no such topic")
}

// TestReminderDuringTopicOutage checks that e-mails are sent on time while events cannot be published.
func TestReminderDuringTopicOutage(t *testing.T) {
	w := newMailed(t)
	w.App.API.Loop.Publisher = unreachable{}
	ana := w.as("ana", "ana@example.com", true)
	w.asks(ana)
	w.pass(6 * time.Minute)
	w.got("the first", 1)
	w.asks(ana)
	for range 58 {
		w.pass(time.Minute)
	}
	w.got("within the hour", 1)
	w.pass(4 * time.Minute)
	w.got("after the hour", 2)
}

// TestReminderLater checks that an e-mail is sent once the mail server is back, that a permanently refused one is not
// sent again, and that the run continues.
func TestReminderLater(t *testing.T) {
	w := newMailed(t)
	ana := w.as("ana", "ana@example.com", true)
	var answer atomic.Pointer[smtp.SMTPError]
	var tries atomic.Int64
	w.server.Taking = func(mailserver.Mail) error {
		tries.Add(1)
		if e := answer.Load(); e != nil {
			return e
		}
		return nil
	}
	answer.Store(&smtp.SMTPError{Code: 451, Message: "try again, ana@example.com"})
	asked := w.asks(ana)
	for range 12 {
		w.pass(5*time.Minute + time.Second)
	}
	if n := tries.Load(); n < 6 || n > 12 {
		t.Errorf("tried %d times in an hour", n)
	}
	if strings.Contains(w.Logs.String(), "ana@") || !strings.Contains(w.Logs.String(), "reminder_failed") {
		t.Errorf("the log says\n%s", w.Logs.String())
	}
	answer.Store(nil)
	w.pass(6 * time.Minute)
	w.got("it is up", 1)
	if a, err := ana.Resolve(t.Context(), asked.Approvals[0], "approve_once"); err != nil || a.HTTP != 200 {
		t.Fatalf("%v %s; want a.HTTP 200", err, a.Body)
	}
	w.sweep()
	if a, err := ana.Run(t.Context(), asked.RunID); err != nil || a.Status != "completed" {
		t.Errorf("%v: %s; want a.Status “completed”", err, a.Body)
	}
	answer.Store(&smtp.SMTPError{Code: 550, Message: "ana@example.com is unknown"})
	w.asks(ana)
	w.later.Add(int64(2 * time.Hour))
	before := tries.Load()
	for range 3 {
		w.pass(6 * time.Minute)
	}
	if n := tries.Load() - before; n != 1 {
		t.Errorf("what is refused for good was tried %d times", n)
	}
}

// TestReminderAgain kills a process between sending an e-mail and recording it. The e-mail is sent again with the same
// ID. While one process sends, no other does.
func TestReminderAgain(t *testing.T) {
	w := newMailed(t)
	ana := w.as("ana", "ana@example.com", true)
	w.asks(ana)
	w.asks(ana)
	dies, cancel := context.WithCancel(t.Context())
	remind := func(ctx context.Context) error {
		return w.App.API.Loop.Reminders.Remind(ctx, "ana", w.App.API.Loop.Reminding)
	}
	var during sync.Once
	w.server.Taking = func(mailserver.Mail) error {
		during.Do(func() {
			if err := remind(t.Context()); err != nil { // while the first one is in progress
				t.Error(err)
			}
		})
		cancel()
		return nil
	}
	w.later.Add(int64(6 * time.Minute))
	if err := remind(dies); !errors.Is(err, context.Canceled) && !errors.Is(err, net.ErrClosed) {
		t.Fatalf("it has not died: %v", err)
	}
	await.That(t, "the server has it", func() bool { return len(w.server.Mails()) == 1 })
	w.server.Taking = nil
	w.sweep() // the other process may still be alive
	w.got("one", 1)
	w.pass(6 * time.Minute)
	m := w.got("again", 2)
	if first := w.server.Mails()[0]; m.Header.Get("Message-Id") != first.Header.Get("Message-Id") {
		t.Errorf("it is another e-mail: %v and %v", first.Header, m.Header)
	}
	w.pass(6 * time.Minute)
	w.got("on record", 2)
	docs, err := w.App.Store.Get(t.Context(), document.UserPath("ana"))
	var u run.User
	if err != nil || document.Decode(docs[0], &u) != nil || u.Reminders.Upto.IsZero() || !u.Reminders.Taken.IsZero() {
		t.Errorf("%v: %+v", err, u.Reminders)
	}
}

// overtaken is a process that another one overtakes before it takes a reminder.
type overtaken struct {
	reminder.Kept
	by func()
}

func (o overtaken) TakeReminder(ctx context.Context, uid string, as run.Reminders, during time.Duration) (bool,
	error) {
	o.by()
	return o.Kept.TakeReminder(ctx, uid, as, during)
}

// TestReminderOfOne has two processes find the same reminder due. One of them sends it.
func TestReminderOfOne(t *testing.T) {
	w := newMailed(t)
	w.asks(w.as("ana", "ana@example.com", true))
	w.later.Add(int64(6 * time.Minute))
	first := w.App.API.Loop.Reminders.(*reminder.Reminders)
	slow := *first
	slow.Kept = overtaken{first.Kept, func() {
		if err := first.Remind(t.Context(), "ana", w.App.API.Loop.Reminding); err != nil {
			t.Error(err)
		}
	}}
	if err := slow.Remind(t.Context(), "ana", w.App.API.Loop.Reminding); err != nil {
		t.Error(err)
	}
	w.got("one", 1)
}

// TestRemindersOff checks that runs with a due reminder keep waiting, and are not quarantined.
func TestRemindersOff(t *testing.T) {
	w := newMailed(t)
	asked := w.asks(w.as("ana", "ana@example.com", true))
	w.App.API.Loop.Reminding, w.App.API.Loop.Reminders = run.Reminding{}, nil
	for range 10 {
		w.pass(10 * time.Minute)
	}
	w.got("switched off", 0)
	docs, err := w.App.Store.Get(t.Context(), document.RunPath(asked.RunID))
	if err != nil {
		t.Fatal(err)
	}
	if f := document.RunFieldsOf(docs[0]); f.Quarantined || f.Tries > 0 || f.Due.Before(time.Now().Add(10*time.Hour)) {
		t.Errorf("its document says %+v", f)
	}
}

// TestRemindersWithoutMail checks that without e-mails, runs' due times do not change and no address is stored.
func TestRemindersWithoutMail(t *testing.T) {
	w := deploy(t)
	w.mail()
	asked := w.ask()
	docs, err := w.App.Store.Get(t.Context(), document.RunPath(asked.RunID), document.UserPath("ana"))
	if err != nil || document.RunFieldsOf(docs[0]).Due.Before(time.Now().Add(time.Hour)) ||
		strings.Contains(string(docs[1].Data), "reminders") {
		t.Errorf("%v: due %v; %s", err, document.RunFieldsOf(docs[0]).Due, docs[1].Data)
	}
	if a := w.call("PATCH", "/api/agent/reminders", `{"mail":true}`); a.HTTP != 409 {
		t.Errorf("%d %s; want a.HTTP 409", a.HTTP, a.Body)
	}
}
