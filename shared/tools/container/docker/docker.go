// Package docker runs containers with an engine that speaks Docker's API: Docker itself, or Podman. A container never
// gets more than package container allows, and has no access to the engine's host. Containers of other owners are
// treated as missing.
//
// Errors are [container.ErrMissing], [container.ErrTaken], or ToolExecutionErrors. A ToolExecutionError is marked as
// transient if the request was never sent, and as ambiguous if its outcome is unknown (package tool). No error repeats
// the engine's messages, which contain paths of its host.
package docker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/docker/go-connections/sockets"
	"github.com/moby/moby/client"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/tools/container"
)

// Config selects the engine.
type Config struct {
	Host     string // unix:///path or tcp://host:port
	CertPath string // directory with ca.pem, cert.pem and key.pem; for tcp, which needs it or Certs
	Certs    string // content of these files, in one text and any order; it overrides CertPath
	Network  string // the engine's network for containers; empty: none
	Timeout  time.Duration
}

// defaultTimeout is the maximum time of one request, not counting the output of a process.
const defaultTimeout = 30 * time.Second

// maxAnswer is the maximum number of bytes read from an answer.
const maxAnswer = 8 << 20

// Engine is a container engine.
type Engine struct {
	client  *client.Client
	streams *client.Client // for the output of processes, for which the library takes over the connection
	network string
	timeout time.Duration

	podman atomic.Int32 // whether it is Podman: 0 unknown, 1 yes, 2 no
}

// Open returns the engine. It sends no request. The error is about the configuration.
func Open(c Config) (*Engine, error) {
	base := &http.Transport{MaxIdleConns: 6, IdleConnTimeout: 30 * time.Second}
	scheme := "http"
	switch {
	case strings.HasPrefix(c.Host, "unix://"):
	case strings.HasPrefix(c.Host, "tcp://") && c.CertPath+c.Certs != "":
		own, err := certificates(c)
		if err != nil {
			return nil, fmt.Errorf("docker: %w", err)
		}
		base.TLSClientConfig, scheme = own, "https"
	default:
		return nil, errors.New("docker: the engine must be at a unix socket, or at tcp with client certificates")
	}
	at, err := client.ParseHostURL(c.Host)
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	if err := sockets.ConfigureTransport(base, at.Scheme, at.Host); err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	e := &Engine{network: c.Network, timeout: cmp.Or(c.Timeout, defaultTimeout)}
	if e.streams, err = connect(c.Host, scheme, base); err != nil {
		return nil, err
	}
	e.client, err = connect(c.Host, scheme, bounded{base})
	return e, err
}

func connect(host, scheme string, by http.RoundTripper) (*client.Client, error) {
	cli, err := client.New(client.WithHost(host), client.WithScheme(scheme),
		client.WithHTTPClient(&http.Client{Transport: by, CheckRedirect: client.CheckRedirect}))
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	return cli, nil
}

// Close closes idle connections.
func (e *Engine) Close() error { return e.streams.Close() }

// Network returns the network of containers, or "" if they have none.
func (e *Engine) Network() string { return e.network }

// Ping returns nil if the engine answers.
func (e *Engine) Ping(ctx context.Context) error {
	return e.ask(ctx, func(ctx context.Context) error {
		_, err := e.client.Ping(ctx, client.PingOptions{})
		return err
	})
}

// answer records the known facts about one request.
type answer struct {
	sent   atomic.Bool
	status atomic.Int32  // 0: no answer came
	body   *bytes.Buffer // receives a copy of the answer; may be nil
}

type answerKey struct{}

// bounded records the result of a request, and reads at most maxAnswer bytes of the answer.
type bounded struct{ *http.Transport }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := r.Context().Value(answerKey{}).(*answer)
	if !ok {
		return nil, errors.New("docker: the request has no time limit")
	}
	a.forget() // the library may have sent requests for its version before
	resp, err := b.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	a.status.Store(int32(resp.StatusCode)) // #nosec G115 -- three digits
	from := io.LimitReader(resp.Body, maxAnswer)
	if a.body != nil {
		from = io.TeeReader(from, a.body)
	}
	resp.Body = body{from, resp.Body}
	return resp, nil
}

// body is an answer that ends at the size limit. Truncated JSON fails to parse.
type body struct {
	io.Reader
	io.Closer
}

func (a *answer) forget() {
	a.sent.Store(false)
	a.status.Store(0)
	if a.body != nil {
		a.body.Reset()
	}
}

// ask makes one request within the timeout, and converts its error.
func (e *Engine) ask(ctx context.Context, request func(context.Context) error) error {
	return e.read(ctx, nil, request)
}

// read is like [Engine.ask], and also copies the answer to body.
func (e *Engine) read(ctx context.Context, body *bytes.Buffer, request func(context.Context) error) error {
	a := &answer{body: body}
	within, cancel := context.WithTimeout(context.WithValue(ctx, answerKey{}, a), e.timeout)
	defer cancel()
	within = httptrace.WithClientTrace(within, &httptrace.ClientTrace{WroteHeaders: func() { a.sent.Store(true) }})
	if err := request(within); err != nil {
		return a.failure()
	}
	return nil
}

// Error codes of requests to the engine.
const (
	CodeUnreachable = fault.Code("docker_unreachable") // nothing was sent
	CodeRefused     = fault.Code("docker_refused")     // the engine refused the request
	CodeFailed      = fault.Code("docker_failed")      // the outcome is unknown
)

// failure returns the error of a failed request. It depends on the recorded answer, not on the library's message.
func (a *answer) failure() error {
	switch status := int(a.status.Load()); {
	case status == http.StatusNotFound:
		return container.ErrMissing
	case status == http.StatusConflict:
		return container.ErrTaken
	case status/100 == 4:
		return fault.New(fault.Tool, CodeRefused, "The container engine refused this (status %d).", status)
	case status/100 == 5, status/100 == 2:
		return failed(status)
	case status == 0 && !a.sent.Load():
		return tool.Transient(fault.New(fault.Tool, CodeUnreachable, "The container engine cannot be reached."))
	}
	return tool.Unanswered(fault.New(fault.Tool, CodeFailed, "The container engine did not answer."))
}

func failed(status int) error {
	return tool.Ambiguous(fault.New(fault.Tool, CodeFailed,
		"The container engine failed, or its response cannot be read (status %d).", status))
}

// Images returns the names of the engine's images, in no particular order; images without a name are left out. It is
// for a developer's own server. A deployment configures the allowed images.
func (e *Engine) Images(ctx context.Context) (names []string, err error) {
	err = e.ask(ctx, func(ctx context.Context) error {
		got, err := e.client.ImageList(ctx, client.ImageListOptions{})
		for _, image := range got.Items {
			for _, name := range image.RepoTags {
				if imageName.MatchString(name) {
					names = append(names, name)
				}
			}
		}
		return err
	})
	return names, err
}

// imageName matches a name as in DOCKER_IMAGES. An image without a name is called "<none>:<none>".
var imageName = lazyregexp.New(`^[a-z0-9][a-z0-9._/:-]{0,254}$`)
