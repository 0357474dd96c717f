package fakegoogle_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// discovery holds the fields of Google's discovery documents that the tests use. The documents are part of Google's Go
// module.
type discovery struct {
	ServicePath string                `json:"servicePath"`
	Parameters  map[string]any        `json:"parameters"`
	Schemas     map[string]*schema    `json:"schemas"`
	Resources   map[string]*resources `json:"resources"`
}

type resources struct {
	Methods   map[string]*apiMethod `json:"methods"`
	Resources map[string]*resources `json:"resources"`
}

type apiMethod struct {
	ID    string `json:"id"`
	Media *struct {
		Accept    []string
		Protocols struct{ Simple struct{ Path string } }
	} `json:"mediaUpload"`
	Path       string         `json:"path"`
	HTTPMethod string         `json:"httpMethod"`
	Parameters map[string]any `json:"parameters"`
	Request    *schema        `json:"request"`
	Scopes     []string       `json:"scopes"`
}

type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 string             `json:"type"`
	Properties           map[string]*schema `json:"properties"`
	Items                *schema            `json:"items"`
	AdditionalProperties *schema            `json:"additionalProperties"`
}

func load(t *testing.T, file string) *discovery {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api").Output()
	if err != nil {
		realpart.Discovery.Absent(t, err.Error())
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), file))
	if err != nil {
		realpart.Discovery.Absent(t, err.Error())
	}
	var d discovery
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// methods returns all methods of a document, with the patterns of their paths.
func (d *discovery) methods() map[*apiMethod]*regexp.Regexp {
	out := map[*apiMethod]*regexp.Regexp{}
	variable := regexp.MustCompile(`\{[^}]+\}`)
	path := func(p string) string { return variable.ReplaceAllString(p, `[^/]+`) }
	var walk func(map[string]*resources)
	walk = func(rs map[string]*resources) {
		for _, r := range rs {
			for _, m := range r.Methods {
				also := "-"
				if m.Media != nil {
					also = path(m.Media.Protocols.Simple.Path)
				}
				out[m] = regexp.MustCompile("^(/" + d.ServicePath + path(m.Path) + "|" + also + ")$")
			}
			walk(r.Resources)
		}
	}
	walk(d.Resources)
	return out
}

// check returns the parts of a request that the document does not describe.
func (d *discovery) check(r *http.Request, body []byte) (id string, problems []string) {
	for m, path := range d.methods() {
		if m.HTTPMethod != r.Method || !path.MatchString(r.URL.Path) ||
			strings.HasSuffix(r.URL.Path, "/send") != strings.HasSuffix(m.Path, "/send") {
			continue
		}
		for name := range r.URL.Query() {
			if m.Parameters[name] == nil && d.Parameters[name] == nil {
				problems = append(problems, "unknown parameter "+name)
			}
		}
		if strings.HasPrefix(r.URL.Path, "/upload/") {
			var problem string
			if body, problem = m.uploaded(r, body); problem != "" {
				problems = append(problems, problem)
			}
		}
		if len(body) > 0 {
			var v any
			if err := json.Unmarshal(body, &v); err != nil {
				problems = append(problems, err.Error())
			}
			problems = append(problems, d.fits(v, m.Request, "body")...)
		}
		return m.ID, problems
	}
	return "", []string{"no such method"}
}

// uploaded returns the JSON of an upload, or the mistake in it.
func (m *apiMethod) uploaded(r *http.Request, body []byte) (data []byte, problem string) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || r.URL.Query().Get("uploadType") != "multipart" {
		return nil, "an upload of another kind: " + r.URL.RawQuery + " " + r.Header.Get("Content-Type")
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for i := 0; ; i++ {
		p, err := parts.NextRawPart()
		if err == io.EOF && i == 2 {
			return data, ""
		}
		if err != nil || i == 2 {
			return nil, fmt.Sprintf("an upload of %d parts: %v", i, err)
		}
		kind := p.Header.Get("Content-Type")
		if i == 0 {
			data, _ = io.ReadAll(p) // from memory
		}
		top, _, _ := strings.Cut(kind, "/")
		if i == 1 && !slices.Contains(m.Media.Accept, top+"/*") {
			return nil, "an upload of " + kind
		}
	}
}

func (d *discovery) fits(v any, s *schema, at string) (problems []string) {
	for s != nil && s.Ref != "" {
		s = d.Schemas[s.Ref]
	}
	if s == nil {
		return []string{at + " is not known"}
	}
	kinds := map[string]string{"map[string]interface {}": "object", "[]interface {}": "array", "string": "string",
		"float64": "integer", "bool": "boolean"}
	if v == nil { // a patch removes the field
		return nil
	}
	if kind := kinds[fmt.Sprintf("%T", v)]; kind != s.Type {
		return []string{fmt.Sprintf("%s is of type %s, not %s", at, kind, s.Type)}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			of := s.Properties[name]
			if of == nil {
				of = s.AdditionalProperties
			}
			problems = append(problems, d.fits(child, of, at+"."+name)...)
		}
	case []any:
		for _, child := range v {
			problems = append(problems, d.fits(child, s.Items, at+"[]")...)
		}
	}
	return problems
}

// TestDiscoveryOfRequests uses the tools, and checks each request that they send against the document, and that none
// has the header that would make net/http repeat it.
func TestDiscoveryOfRequests(t *testing.T) {
	mailAPI, calendarAPI := load(t, "gmail/v1/gmail-api.json"), load(t, "calendar/v3/calendar-api.json")
	s, _ := open(t, "")
	asked := map[string]bool{}
	var mu sync.Mutex // of asked: e-mails are read several at once
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		d := mailAPI
		if strings.HasPrefix(r.URL.Path, "/calendar/") {
			d = calendarAPI
		}
		id, problems := d.check(r, body)
		mu.Lock()
		asked[id] = true
		mu.Unlock()
		for _, p := range problems {
			t.Errorf("%s %s: %s", r.Method, r.URL.Path, p)
		}
		for name := range r.Header {
			if strings.Contains(strings.ToLower(name), "idempotency") {
				t.Errorf("%s has the header %s", id, name)
			}
		}
		s.ServeHTTP(w, r)
	}))
	defer srv.Close()

	now := func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
	carryOut(t, gmail.New(fakegoogle.Accounts{}, gmail.Options{Endpoint: srv.URL + "/"}), "me:"+compose+" "+metadata,
		`{"to":["a@example.com"],"subject":"s","body":"b","htmlBody":"<p>b","threadId":"18c0","inReplyTo":"<x@y.example>"}`)
	carryOut(t, gmail.New(fakegoogle.Accounts{}, gmail.Options{Endpoint: srv.URL + "/", Mode: gmail.Direct}),
		"me:"+sendOnly, `{"to":["a@example.com"],"subject":"s","body":"b"}`)
	carryOut(t, gmail.NewDraft(fakegoogle.Accounts{}, gmail.Options{Endpoint: srv.URL + "/"}), "me:"+compose,
		`{"to":["a@example.com"],"subject":"s","body":"b"}`)
	ct := calendar.New(fakegoogle.Accounts{}, calendar.Options{Endpoint: srv.URL + "/calendar/v3/", Now: now})
	args := `{"summary":"x","start":"2027-01-05T10:00:00","end":"2027-01-05T11:00:00","timeZone":"Europe/Berlin","attendees":["a@example.com"],"location":"l","description":"d","recurrence":["RRULE:FREQ=WEEKLY;COUNT=3"],"meet":true}`
	carryOut(t, ct, "me:"+events, args)
	made := s.Events()[0]["id"].(string)
	days := calendar.Options{Endpoint: srv.URL + "/calendar/v3/", Now: now}
	carryOut(t, calendar.NewUpdate(fakegoogle.Accounts{}, days), "me:"+events, `{"eventId":"`+made+`","summary":"y",`+
		`"start":"2027-01-05T12:00:00","location":"","description":"e","addAttendees":["b@example.com"],"removeAttendees":["a@example.com"]}`)
	carryOut(t, calendar.NewFreeBusy(fakegoogle.Accounts{}, days), "me:"+busy,
		`{"from":"2027-01-05","to":"2027-01-31","timeZone":"Europe/Berlin","people":["a@example.com"]}`)
	lists := calendar.NewList(fakegoogle.Accounts{}, calendar.Options{Endpoint: srv.URL + "/calendar/v3/"})
	carryOut(t, lists, "me:"+events,
		`{"from":"2027-01-05","to":"2027-01-31","timeZone":"Europe/Berlin","query":"x","limit":1}`)

	if err := s.Receive("me@example.com", []byte("Subject: x\r\n\r\nx")); err != nil {
		t.Fatal(err)
	}
	carryOut(t, gmail.NewSearch(fakegoogle.Accounts{}, gmail.Options{Endpoint: srv.URL + "/"}), "me:"+gmailRead,
		`{"query":"x"}`)
	thread := s.Newest("me@example.com")
	for _, args := range []string{`{"messageId":"` + thread + `"}`, `{"threadId":"` + thread + `"}`} {
		carryOut(t, gmail.NewRead(fakegoogle.Accounts{}, gmail.Options{Endpoint: srv.URL + "/"}), "me:"+gmailRead, args)
	}

	if err := s.Receive("me@example.com", []byte("Content-Type: application/pdf\r\n"+
		"Content-Disposition: attachment; filename=x.pdf\r\n\r\n%PDF-1.7")); err != nil {
		t.Fatal(err)
	}
	for _, o := range []gmail.Options{{}, {Mode: gmail.Direct}} {
		o.Endpoint, o.Reads = srv.URL+"/", true
		carryOut(t, gmail.New(fakegoogle.Accounts{}, o), "me:"+compose+" "+gmailRead+" "+sendOnly,
			`{"to":["a@example.com"],"subject":"s","body":"b","attachments":[{"messageId":"`+
				s.Newest("me@example.com")+`"}]}`)
	}

	s.SetSendAs("me@example.com", fakegoogle.SendAs{Address: "desk@example.com"})
	carryOut(t, gmail.New(fakegoogle.Accounts{}, gmail.Options{Endpoint: srv.URL + "/", Reads: true}),
		"me:"+compose+" "+gmailRead, `{"from":"desk@example.com","to":["a@example.com"],"subject":"s","body":"b"}`)

	carryOut(t, gmail.NewModify(fakegoogle.Accounts{}, gmail.Options{Endpoint: srv.URL + "/"}), "me:"+modifyScope,
		`{"threadId":"`+thread+`","addLabels":["STARRED"],"removeLabels":["INBOX"]}`)

	for _, id := range []string{
		"gmail.users.messages.attachments.get",
		"gmail.users.settings.sendAs.list", "gmail.users.labels.list", "gmail.users.messages.modify",
		"gmail.users.drafts.create", "gmail.users.drafts.list", "gmail.users.drafts.get", "gmail.users.drafts.send",
		"gmail.users.messages.send", "gmail.users.threads.get",
		"calendar.events.insert", "calendar.events.get", "calendar.events.patch",
		"calendar.freebusy.query",
		"calendar.events.list", "gmail.users.messages.list", "gmail.users.messages.get",
	} {
		if !asked[id] {
			t.Errorf("%s was not asked: the test lost its subject (asked: %v)", id, asked)
		}
	}
}

func carryOut(t *testing.T, tl *tool.Tool, uid, args string) {
	t.Helper()
	canonical, err := tl.Normalize(json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	c := tool.Call{UID: uid, ActionID: "action_" + tl.Version(), Args: canonical}
	if c.Args, err = tl.Complete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if tl.Prepares() {
		if c.Handle, err = tl.Prepare(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tl.Execute(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if !tl.SideEffect {
		return
	}
	if out, err := tl.Reconcile(t.Context(), c); err != nil || tl.Prepares() && out.Verdict != tool.Done {
		t.Fatalf("Reconcile = %+v, %v", out, err)
	}
}
