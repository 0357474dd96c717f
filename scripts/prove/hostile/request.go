package hostile

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// message is a request as a case describes it.
type message struct {
	uid    string // the user whose token it has
	route  route
	query  string
	header http.Header
	host   string
	body   string
	slow   map[string]any
}

// compose returns the request of a case, built from the input.
func (s *env) compose(to route) message {
	m := message{uid: s.as, route: to, header: http.Header{"Content-Type": {"application/json"}}}
	path := s.takeText("path")
	slow, _ := s.take("slow")
	s.takeBody(&m)
	s.takeHeaders(&m)
	for _, name := range []string{"runId", "threadId", "entryId"} {
		if strings.Contains(m.route.path, "{"+name+"}") && path == "" {
			m.route.path = strings.ReplaceAll(m.route.path, "{"+name+"}", s.takeText(name))
		}
	}
	if key, ok := s.take("idempotencyKey"); ok {
		m.header.Set("Idempotency-Key", textOf(key))
	}
	if kind := s.takeText("content_type"); kind != "" {
		m.header.Set("Content-Type", kind)
	}
	m.route = route{cmp.Or(s.takeText("method"), m.route.method), cmp.Or(path, m.route.path)}
	m.query = s.takeText("query")
	m.slow, _ = slow.(map[string]any)
	return m
}

func (s *env) takeBody(m *message) {
	raw, isRaw := s.take("raw")
	body, isBody := s.take("body")
	switch {
	case isRaw:
		m.body = textOf(wrapped(s.c, raw))
	case isBody:
		m.body = textOf(wrapped(s.c, json.RawMessage(jsonOf(body))))
		s.keep(body)
	}
}

// takeHeaders reads the replacement for the token of the case's user: another token, or headers. In the category auth,
// the case's headers are all headers of the request.
func (s *env) takeHeaders(m *message) {
	token, given := s.take("token")
	headers, listed := s.take("headers")
	switch {
	case given:
		m.header.Set("Authorization", "Bearer "+textOf(token))
		s.secret(textOf(token))
	case !listed || s.c.Category != "auth":
		own, err := s.ownToken()
		s.must(err)
		m.header.Set("Authorization", "Bearer "+own)
	}
	values, ok := headers.(map[string]any)
	if list, many := headers.([]any); many { // one object for each header
		values, ok = map[string]any{}, true
		for _, one := range list {
			fields, _ := one.(map[string]any)
			maps.Copy(values, fields)
		}
	}
	if listed && !ok {
		s.unknown("headers that are %T", headers)
	}
	for name, v := range values {
		if many, ok := v.([]any); ok {
			m.header.Del(name)
			for _, one := range many {
				m.header.Add(name, textOf(one))
			}
			continue
		}
		m.header.Set(name, textOf(v))
	}
	m.host = m.header.Get("Host")
	m.header.Del("Host")
}

// ownToken returns the token that the target needs.
func (s *env) ownToken() (string, error) {
	if strings.HasPrefix(s.c.Target, "push:") || s.c.Target == "http:sweep" {
		return s.pushToken(s.ctx)
	}
	return s.userToken(s.as)
}

// answerTime limits a complete response. It is needed because a stream of events that should be refused never ends.
const answerTime = await.Most

// send sends the request, which must be answered.
func (s *env) send(m message) testkit.Answer {
	a, err := s.try(m)
	s.must(err)
	return a
}

// try sends the request through a client, or directly to the handler if no client would send it.
func (s *env) try(m message) (testkit.Answer, error) {
	if m.slow != nil {
		return s.dribble(m)
	}
	url := s.w.Base + m.route.path
	if m.query != "" {
		url += "?" + m.query
	}
	ctx, cancel := context.WithTimeout(s.ctx, answerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, m.route.method, url, strings.NewReader(m.body))
	if err != nil {
		return testkit.Answer{}, err
	}
	req.Header = m.header
	if m.host != "" {
		req.Host = m.host
	}
	if unsendable(m.header) {
		return s.hand(m, req)
	}
	// This follows no redirect, and does not reuse a connection after a bad request.
	res, err := (&http.Transport{}).RoundTrip(req)
	if err != nil {
		return testkit.Answer{}, err
	}
	return s.read(m, res)
}

func unsendable(h http.Header) bool {
	for _, values := range h {
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return true
			}
		}
	}
	return false
}

// hand passes the request to the handler as if it had arrived over the network.
func (s *env) hand(m message, req *http.Request) (testkit.Answer, error) {
	req.RequestURI, req.RemoteAddr = req.URL.RequestURI(), "192.0.2.1:1234"
	rec := httptest.NewRecorder()
	s.handler().ServeHTTP(rec, req)
	return s.read(m, rec.Result())
}

// handler returns the handler of every function.
func (s *env) handler() http.Handler {
	return s.w.App.Handler(api.Functions...)
}

func (s *env) read(m message, res *http.Response) (testkit.Answer, error) {
	defer res.Body.Close()
	a, err := testkit.ReadAnswer(res)
	s.hear(m.uid, m.route.method+" "+m.route.path, a)
	return a, err
}

// dribble sends a body byte by byte, over a separate connection.
func (s *env) dribble(m message) (testkit.Answer, error) {
	rate, e1 := number(m.slow["bytes_per_s"])
	total, e2 := number(m.slow["total"])
	if err := errors.Join(e1, e2); err != nil || rate < 1 {
		return testkit.Answer{}, unknown("slow: %v", m.slow)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.w.Base, "http://"))
	if err != nil {
		return testkit.Answer{}, err
	}
	defer conn.Close()
	var head bytes.Buffer
	fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: countersign\r\nContent-Length: %d\r\n", m.route.method, m.route.path,
		total)
	if err := m.header.Write(&head); err != nil {
		return testkit.Answer{}, err
	}
	if _, err := conn.Write(append(head.Bytes(), "\r\n"...)); err != nil {
		return testkit.Answer{}, err
	}
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	go trickle(ctx, conn, rate, total)
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return testkit.Answer{}, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return testkit.Answer{}, err
	}
	return s.read(m, res)
}

// trickle writes spaces until it is stopped or the other end closes the connection.
func trickle(ctx context.Context, conn net.Conn, rate, total int) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for range total {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := conn.Write([]byte(" ")); err != nil {
				return
			}
		}
	}
}
