package hostile

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/fetch"
	"github.com/countersign-run/countersign/shared/testkit/fakeweb"
	webtools "github.com/countersign-run/countersign/shared/tools/web"
)

// webFetch is the tool that reads pages.
const webFetch = "web_fetch"

// reader is the agent that reads pages.
const reader = "name: reader\ninstruction: You read pages.\ntools: [web_fetch]\n"

// proxy is the address of the proxy in this process's environment. Nothing listens there.
const proxy = "http://127.0.0.1:3128"

// proxied are the environment variables that name a proxy.
var proxied = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"}

// site is the internet of a case: the addresses of each name, and the responses there.
type site struct {
	names  map[string][]string
	turns  map[string]int // number of DNS answers that each name has, in turn
	answer http.HandlerFunc

	mu     sync.Mutex
	header http.Header // the headers of all requests
}

// fetching runs a case of tool:web_fetch: an agent fetches the case's address in the case's internet.
func fetching(s *env) got {
	on := s.site()
	internet, err := fakeweb.Open(on.names, on)
	s.must(err)
	s.closers = append(s.closers, internet.Close)
	agents := filepath.Join(s.dir, "agents")
	s.must(os.Mkdir(agents, 0o700))
	s.must(os.WriteFile(filepath.Join(agents, "reader.agent.yaml"), []byte(reader), 0o600))
	s.more = append(s.more, app.Replace(fetch.With(internet.Options())))
	s.open(nil, "WEB_TOOLS=on", "AGENTS="+agents)
	args, given := s.take("args")
	if !given {
		args = map[string]any{"url": "https://ok.test/"}
	}
	absent, _ := s.take("expect_request_headers_absent")
	s.w.SetModel(once(webFetch, args))
	asked := s.call(s.as, "POST", "/api/agent/run", string(s.readingOf(textOf(args.(map[string]any)["url"]))))
	g := gotOf(asked)
	if g.decision = "allow"; g.class != "none" {
		g.decision = "deny"
	}
	for _, at := range internet.Reached() {
		if at != fakeweb.Public+":80" && at != fakeweb.Public+":443" {
			s.wrong("%s was reached", at)
		}
	}
	s.noneOf(on.header, absent)
	return g
}

// readingOf returns a request to read the address. The user names it, because an address that the model makes up needs
// approval.
func (s *env) readingOf(url string) []byte {
	prompt := "Please read " + url
	if u, err := webtools.Address(url); err == nil {
		prompt += " " + u.String()
	}
	b, err := json.Marshal(map[string]string{"prompt": prompt, "agent": "reader"})
	s.must(err)
	return b
}

// noneOf reports sent headers whose names begin with an entry of the list.
func (s *env) noneOf(sent http.Header, absent any) {
	list, _ := absent.([]any)
	for name := range sent {
		for _, begin := range list {
			if strings.HasPrefix(strings.ToLower(name), strings.ToLower(textOf(begin))) {
				s.wrong("the header %s goes along", name)
			}
		}
	}
}

// site reads the addresses of the names, and the responses, from the case.
func (s *env) site() *site {
	on := &site{names: map[string][]string{"ok.test.": {fakeweb.Public}, "example.com.": {fakeweb.Public}},
		turns: map[string]int{}, header: http.Header{}, answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "A page.")
		}}
	for name, v := range s.takeMap("dns") {
		on.names[name+"."] = leadsTo(v)
	}
	for name, v := range s.takeMap("dns_sequence") {
		turns := leadsTo(v)
		on.names[name+"."], on.turns[name] = []string{strings.Join(turns, "|")}, len(turns)
	}
	for name, v := range s.takeMap("env") {
		if os.Getenv(name) != proxy || textOf(v) != proxy { // set for the whole process by goOffline
			s.unknown("the variable %s", name)
		}
	}
	answers := s.takeMap("server")
	for what, v := range answers {
		on.answer = s.answerOf(what, v, answers)
	}
	return on
}

func (s *env) takeMap(key string) map[string]any {
	v, _ := s.take(key)
	m, _ := v.(map[string]any)
	return m
}

// leadsTo returns the one address or the several addresses of a name.
func leadsTo(v any) (all []string) {
	list, ok := v.([]any)
	if !ok {
		return []string{textOf(v)}
	}
	for _, one := range list {
		all = append(all, textOf(one))
	}
	return all
}

// answerOf returns the handler of a response: a status and the target of a redirect, a number of redirects, or a body
// that inflates to many bytes.
func (s *env) answerOf(what string, v any, all map[string]any) http.HandlerFunc {
	status, err := strconv.Atoi(what)
	switch {
	case err == nil && status/100 == 3:
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", textOf(v))
			w.WriteHeader(status)
		}
	case what == "redirects":
		return leading(s.number(v), s.answerOf("", nil, nil))
	case what == "gzip_out_mb" || what == "gzip_in_kb":
		return inflating(int64(s.number(all["gzip_out_mb"])) << 20)
	case what != "":
		s.unknown("a server with %s", what)
	}
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
}

// leading redirects the given number of times, and then calls then.
func leading(times int, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err == nil && n >= times {
			then(w, r)
			return
		}
		http.Redirect(w, r, fmt.Sprintf("/%d", n+1), http.StatusFound)
	}
}

// inflating responds with compressed zeros, as long as the client reads.
func inflating(size int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		if _, err := io.CopyN(z, zeros{}, size); err == nil {
			_ = z.Close() // the client may have disconnected
		}
	}
}

// ServeHTTP responds. A name with changing addresses redirects to itself until each was used.
func (o *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	for name, values := range r.Header {
		o.header[name] = values
	}
	o.mu.Unlock()
	if turns := o.turns[r.Host]; turns > 0 {
		leading(turns-1, o.answer)(w, r)
		return
	}
	o.answer(w, r)
}
