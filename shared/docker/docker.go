// Package docker runs containers by an engine that speaks Docker's API: Docker's own, or Podman. Whatever is asked for,
// a container gets no more than package container says, and nothing of the engine's host. What belongs to another
// owner is missing.
//
// Errors are [container.ErrMissing] and [container.ErrTaken], or of the class ToolExecutionError: marked transient
// where the request was never sent, and ambiguous where it is not known what became of it (package tool). No error
// repeats what the engine says, which names paths of its host.
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

	"github.com/countersign-run/countersign/shared/container"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/lazyregexp"
	"github.com/countersign-run/countersign/shared/tool"
)

// Config says which engine is used.
type Config struct {
	Host     string // unix:///path or tcp://host:port
	CertPath string // the directory of ca.pem, cert.pem and key.pem; used with tcp alone, where it or Certs is needed
	Certs    string // what is in those files, in one text and any order; it wins over CertPath
	Network  string // of the engine's networks, the one that containers are in; empty: none
	Timeout  time.Duration
}

// defaultTimeout is how long one request may take, but for the output of a process.
const defaultTimeout = 30 * time.Second

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 8 << 20

// Engine is an engine of containers.
type Engine struct {
	client  *client.Client
	streams *client.Client // for what a process prints: the library takes the connection over for it
	network string
	timeout time.Duration

	podman atomic.Int32 // whether it is Podman: 0 is not known, 1 yes, 2 no
}

// Open returns the engine, without a request to it.
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
		return nil, errors.New("docker: the engine is one of a unix socket, or of tcp with client certificates")
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

// Network is the network that containers are in; empty: none.
func (e *Engine) Network() string { return e.network }

// Ping returns nil if the engine answers.
func (e *Engine) Ping(ctx context.Context) error {
	return e.ask(ctx, func(ctx context.Context) error {
		_, err := e.client.Ping(ctx, client.PingOptions{})
		return err
	})
}

// answer is what is known of one request.
type answer struct {
	sent   atomic.Bool
	status atomic.Int32  // 0: none came
	body   *bytes.Buffer // gets what is read of it; may be nil
}

type answerKey struct{}

// bounded notes what comes of a request, and reads no more of its answer than maxAnswer.
type bounded struct{ *http.Transport }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := r.Context().Value(answerKey{}).(*answer)
	if !ok {
		return nil, errors.New("docker: a request that nobody has bounded")
	}
	a.forget() // the library may have asked for versions before
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

// body is an answer that ends where it is too long, which no JSON survives.
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

// ask makes one request within its time, and says what its error means.
func (e *Engine) ask(ctx context.Context, request func(context.Context) error) error {
	return e.read(ctx, nil, request)
}

// read is ask with a copy of the answer.
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

// The codes of failures.
const (
	CodeUnreachable = fault.Code("docker_unreachable") // nothing was sent
	CodeRefused     = fault.Code("docker_refused")     // the engine answered that it does not do this
	CodeFailed      = fault.Code("docker_failed")      // it is not known what the engine did
)

// failure says what a request's error means, by what came of it and not by the library's words.
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
		"The container engine failed, or its answer cannot be read (status %d).", status))
}

// Images returns the names of the images that the engine has, of those that have one, in no order. It is for a server
// of a developer's own: a deployment says which may be used.
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

// imageName is as DOCKER_IMAGES has it; what has no name is "<none>:<none>".
var imageName = lazyregexp.New(`^[a-z0-9][a-z0-9._/:-]{0,254}$`)
