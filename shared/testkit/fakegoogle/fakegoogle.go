// Package fakegoogle implements the Gmail and the Calendar of the local server. It speaks their REST protocols, so
// the tools and Google's own client libraries run unchanged. It stores what it receives in one file, and delivers
// only e-mails between its own users. It is as strict as Google's services, and imitates their known surprises: it
// refuses unknown tokens and missing scopes, replaces a Message-ID, sends a draft only once, and never reuses the ID
// of a deleted event. It is built from Google's reference and guides; undocumented behaviour is not imitated.
package fakegoogle

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Scopes that the served methods accept.
const (
	scopeAll              = "https://mail.google.com/"
	scopeCompose          = "https://www.googleapis.com/auth/gmail.compose"
	scopeModify           = "https://www.googleapis.com/auth/gmail.modify"
	scopeReadonly         = "https://www.googleapis.com/auth/gmail.readonly"
	scopeMetadata         = "https://www.googleapis.com/auth/gmail.metadata"
	scopeLabels           = "https://www.googleapis.com/auth/gmail.labels"
	scopeSend             = "https://www.googleapis.com/auth/gmail.send"
	scopeSettings         = "https://www.googleapis.com/auth/gmail.settings.basic"
	scopeCalendar         = "https://www.googleapis.com/auth/calendar"
	scopeEvents           = "https://www.googleapis.com/auth/calendar.events"
	scopeEventsReadonly   = "https://www.googleapis.com/auth/calendar.events.readonly"
	scopeFreebusy         = "https://www.googleapis.com/auth/calendar.freebusy"
	scopeEventsFreebusy   = "https://www.googleapis.com/auth/calendar.events.freebusy"
	scopeCalendarReadonly = "https://www.googleapis.com/auth/calendar.readonly"
)

// Options of a server.
type Options struct {
	// User returns the account and the scopes of an access token. Required.
	User func(bearer string) (email string, scopes []string, ok bool)
	// Delivers reports whether the address has an account here. Mail to such an address arrives there, and so do
	// invitations. Nil: no address has one.
	Delivers func(address string) bool
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Dir is the directory of the file google.jsonl, which stores the mailbox and the calendar; empty: they are in
	// memory.
	Dir string
	// Fault returns the fault of an operation, for tests. op is a name such as "gmail.drafts.send". Nil: none fails.
	Fault func(op string) Fault
}

// Server is the local Gmail and Calendar. Mount it at the paths that it serves: /gmail/, /upload/gmail/ and
// /calendar/.
type Server struct {
	opts Options
	mux  *http.ServeMux

	mu      sync.Mutex
	state   state
	journal *journal
	shares  map[[2]string]bool  // owner and reader of shared busy times
	sendAs  map[string][]SendAs // other addresses of the accounts
}

// New returns a server. It fails if the file in Dir cannot be read or written.
func New(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Fault == nil {
		o.Fault = func(string) Fault { return Fault{} }
	}
	s := &Server{opts: o, mux: http.NewServeMux(), state: newState(), shares: map[[2]string]bool{},
		sendAs: map[string][]SendAs{}}
	if o.Dir != "" {
		j, err := openJournal(o.Dir, s.state.apply)
		if err != nil {
			return nil, err
		}
		s.journal = j
	}
	s.routes()
	return s, nil
}

// Close closes the file. Changes that were answered are durable even without Close.
func (s *Server) Close() error {
	if s.journal == nil {
		return nil
	}
	return s.journal.close()
}

// ServeHTTP answers a request of a Google client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Bearer returns an HTTP client that uses the access token, as an OAuth client would.
func Bearer(token string) *http.Client { return &http.Client{Transport: bearer(token)} }

// Accounts has one account for each user, without a server.
type Accounts struct {
	Token func(uid string) string // returns a user's access token; nil: the user's ID
}

// Place returns the user's account.
func (Accounts) Place(_ context.Context, uid string, _ []string) (tool.Place, error) {
	return tool.Place{Label: "From", Name: uid, ID: "local"}, nil
}

// Reads returns nil: the account does not depend on a document.
func (Accounts) Reads(string) []string { return nil }

// Client returns an HTTP client that acts as the user, only in the user's account. A call without a place acts there
// too.
func (a Accounts) Client(ctx context.Context, uid string, in tool.Place) (*http.Client, error) {
	if own, err := a.Place(ctx, uid, nil); err != nil || in != (tool.Place{}) && tool.SamePlace(in, own) != nil {
		return nil, tool.SamePlace(in, own)
	}
	if a.Token != nil {
		uid = a.Token(uid)
	}
	return Bearer(uid), nil
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// request is one authorized request.
type request struct {
	*http.Request
	email string
	can   func(scope string) bool
}

// method runs an operation under the lock. It returns a JSON value or an error.
type method func(r request) (any, *apiError)

func (s *Server) routes() {
	gmailRead := []string{scopeAll, scopeModify, scopeReadonly, scopeMetadata}
	draftRead := []string{scopeAll, scopeModify, scopeCompose, scopeReadonly}
	draftWrite := []string{scopeAll, scopeModify, scopeCompose}
	eventRead := []string{scopeCalendar, scopeEvents, scopeEventsReadonly, scopeCalendarReadonly}
	eventWrite := []string{scopeCalendar, scopeEvents}

	const user = "/gmail/v1/users/{userId}"
	s.handle("GET "+user+"/profile", "gmail.getProfile",
		[]string{scopeAll, scopeModify, scopeCompose, scopeReadonly, scopeMetadata}, s.getProfile)
	s.handle("POST "+user+"/drafts", "gmail.drafts.create", draftWrite, s.createDraft)
	s.handle("GET "+user+"/drafts", "gmail.drafts.list", draftRead, s.listDrafts)
	s.handle("GET "+user+"/drafts/{id}", "gmail.drafts.get", draftRead, s.getDraft)
	s.handle("PUT "+user+"/drafts/{id}", "gmail.drafts.update", draftWrite, s.updateDraft)
	s.handle("DELETE "+user+"/drafts/{id}", "gmail.drafts.delete", draftWrite, s.deleteDraft)
	s.handle("POST "+user+"/drafts/send", "gmail.drafts.send", draftWrite, s.sendDraft)
	s.handle("POST "+user+"/messages/send", "gmail.messages.send",
		[]string{scopeAll, scopeModify, scopeCompose, scopeSend}, s.sendMessage)
	s.handle("POST /upload"+user+"/messages/send", "gmail.messages.send",
		[]string{scopeAll, scopeModify, scopeCompose, scopeSend}, s.sendMessage)
	s.handle("POST /upload"+user+"/drafts", "gmail.drafts.create", draftWrite, s.createDraft)
	s.handle("POST /upload"+user+"/drafts/send", "gmail.drafts.send", draftWrite, s.sendDraft)
	s.handle("GET "+user+"/messages/{id}/attachments/{attachment}", "gmail.messages.attachments.get",
		[]string{scopeAll, scopeModify, scopeReadonly}, s.getAttachment)
	s.handle("GET "+user+"/messages", "gmail.messages.list", gmailRead, s.listMessages)
	s.handle("GET "+user+"/messages/{id}", "gmail.messages.get", gmailRead, s.getMessage)
	s.handle("GET "+user+"/threads/{id}", "gmail.threads.get", gmailRead, s.getThread)
	s.handle("POST "+user+"/messages/{id}/modify", "gmail.messages.modify", []string{scopeAll, scopeModify},
		s.modifyMessage)
	s.handle("POST "+user+"/threads/{id}/modify", "gmail.threads.modify", []string{scopeAll, scopeModify},
		s.modifyThread)
	s.handle("GET "+user+"/settings/sendAs", "gmail.settings.sendAs.list",
		[]string{scopeAll, scopeModify, scopeReadonly, scopeSettings}, s.listSendAs)
	s.handle("GET "+user+"/labels", "gmail.labels.list", append(gmailRead, scopeLabels), s.listLabels)

	const events = "/calendar/v3/calendars/{calendarId}/events"
	s.handle("POST "+events, "calendar.events.insert", eventWrite, s.insertEvent)
	s.handle("GET "+events, "calendar.events.list", eventRead, s.listEvents)
	s.handle("GET "+events+"/{id}", "calendar.events.get", eventRead, s.getEvent)
	s.handle("PATCH "+events+"/{id}", "calendar.events.patch", eventWrite, s.patchEvent)
	s.handle("DELETE "+events+"/{id}", "calendar.events.delete", eventWrite, s.deleteEvent)

	s.handle("POST /calendar/v3/freeBusy", "calendar.freebusy.query",
		[]string{scopeCalendar, scopeCalendarReadonly, scopeFreebusy, scopeEventsFreebusy}, s.queryBusy)

	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { notFound().write(w) })
}

// handle registers a method. It checks the token and the scope, and applies the test's fault.
func (s *Server) handle(pattern, op string, scopes []string, do method) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			unauthenticated().write(w)
			return
		}
		email, granted, ok := s.opts.User(bearer)
		if !ok {
			unauthenticated().write(w)
			return
		}
		can := func(scope string) bool { return slices.Contains(granted, scope) }
		if !slices.ContainsFunc(scopes, can) {
			scopeMissing().write(w)
			return
		}
		if id := r.PathValue("userId"); id != "" && id != "me" && id != email {
			forbidden("Delegation denied for " + email).write(w)
			return
		}
		if id := r.PathValue("calendarId"); id != "" && id != "primary" && id != email {
			notFound().write(w)
			return
		}
		most := int64(maxRequest)
		if strings.HasPrefix(r.URL.Path, "/upload/") {
			most = maxUpload
		}
		r.Body = http.MaxBytesReader(w, r.Body, most)
		s.interfere(w, r, op, func() (any, *apiError) {
			answer, failed := do(request{r, email, can})
			if failed != nil || answer == nil {
				return answer, failed
			}
			return readFields(r.URL.Query().Get("fields")).partial(answer), nil
		})
	})
}

// maxRequest is the size limit of a JSON request. maxUpload is the size limit of a request that uploads a message: the
// limit for a message in Gmail's discovery document, and room for the other parts of the request.
const (
	maxRequest = 8 << 20
	maxUpload  = 36_700_160 + 64<<10
)
