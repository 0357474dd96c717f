// Package gemini calls Gemini through the Gemini Developer API or Vertex AI, with Google's own client (genai).
//
// Contents are sent and received byte for byte. genai's types lose parts of them: empty arguments, empty texts and
// unknown fields. The package's round tripper therefore puts the contents into the request, and reads the answer from
// the response's bytes. The encoded tools and settings of an agent are reused while they stay the same. If no caller
// reads the text as it arrives, the answer is requested as one response, which genai does not see. If the answer is a
// stream, genai decodes only the text that is passed on.
package gemini

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/base/wait"
)

// DefaultModel is the current Flash model, generally available since September 2026
// (ai.google.dev/gemini-api/docs/models).
const DefaultModel = "gemini-3.8-flash"

// Defaults and limits of requests.
const (
	MaxAttempts           = 4
	DefaultAttemptTimeout = 2 * time.Minute
	MaxWait               = time.Minute // between two attempts; if the service asks for a longer wait, the call fails
	MaxBody               = 8 << 20     // bytes of one response with all its metadata
)

// Config configures a [Model]. Either APIKey or VertexProject is required; VertexProject takes precedence.
type Config struct {
	APIKey  string
	Model   string // for requests that name none; empty: DefaultModel
	BaseURL string // another endpoint with the Gemini protocol; empty: Google's

	VertexProject  string
	VertexLocation string // empty: global
	VertexEndpoint string // a host or a URL; empty: that of the location

	AttemptTimeout time.Duration

	// HTTPClient sends the requests. Nil means the default transport; on Vertex AI it uses Application Default
	// Credentials. A client for Vertex AI must add the credentials itself.
	HTTPClient *http.Client

	Now    func() time.Time                                 // nil: time.Now
	Sleep  func(ctx context.Context, d time.Duration) error // nil: a timer; must return ctx's error if ctx ends first
	Jitter func() float64                                   // in [0, 1); nil: random
}

// Model is a model.Model. It is safe for concurrent use.
type Model struct {
	cfg      Config
	client   *genai.Client
	settings *settings
}

var _ model.Model = (*Model)(nil)

// New returns a Model. It sends no request. The errors name the missing or invalid setting.
func New(ctx context.Context, cfg Config) (*Model, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	cfg.AttemptTimeout = cmp.Or(cfg.AttemptTimeout, DefaultAttemptTimeout)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Sleep == nil {
		cfg.Sleep = wait.For
	}
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	if cfg.APIKey == "" && cfg.VertexProject == "" {
		return nil, fault.Invalid("GEMINI_API_KEY", "set a Gemini API key or a Vertex AI project")
	}
	cc := clientConfig(cfg)
	client, err := quietly(func() (*genai.Client, error) { return genai.NewClient(ctx, cc) })
	if err != nil {
		return nil, fault.Invalid("VERTEX_AI_PROJECT_ID",
			"cannot create the Gemini client; check the Application Default Credentials").Because(err)
	}
	// If cc.HTTPClient was nil, genai made one with the credentials in its transport.
	cc.HTTPClient.Transport = &wire{base: cmp.Or(cc.HTTPClient.Transport, outbound.Default())}
	// A redirect would send the key and the conversation to another host.
	cc.HTTPClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Model{cfg, client, newSettings()}, nil
}

func clientConfig(cfg Config) *genai.ClientConfig {
	cc := &genai.ClientConfig{Backend: genai.BackendGeminiAPI, APIKey: cfg.APIKey,
		HTTPOptions: genai.HTTPOptions{BaseURL: cfg.BaseURL}}
	if cfg.HTTPClient != nil {
		own := *cfg.HTTPClient
		cc.HTTPClient = &own
	}
	if cfg.VertexProject == "" {
		return cc
	}
	cc.Backend, cc.APIKey = genai.BackendVertexAI, ""
	cc.Project, cc.Location = cfg.VertexProject, cmp.Or(cfg.VertexLocation, "global")
	cc.HTTPOptions.BaseURL = cfg.VertexEndpoint
	if e := cfg.VertexEndpoint; e != "" && !strings.Contains(e, "://") {
		cc.HTTPOptions.BaseURL = "https://" + e
	}
	return cc
}

// Name returns the model for requests that name none.
func (m *Model) Name() string { return m.cfg.Model }

// Service returns the service that answers: vertex, or gemini for the Gemini Developer API (model.SignedBy).
func (m *Model) Service() string {
	if m.cfg.VertexProject != "" {
		return "vertex"
	}
	return "gemini"
}

// named returns the model for the request.
func (m *Model) named(req model.Request) string { return cmp.Or(req.Settings.Name, m.cfg.Model) }

// Generate implements [model.Model]. The codes of its errors are those of package model. Overload, a quota and a broken
// connection are retried within ctx's deadline, unless a piece of the answer has been shown.
func (m *Model) Generate(ctx context.Context, req model.Request, delta func(text string)) (*model.Reply, error) {
	if len(req.Contents) == 0 {
		return nil, fault.New(fault.Model, model.CodeRefused, "The model request is empty.")
	}
	for attempt := 1; ; attempt++ {
		reply, err := m.attempt(ctx, req, delta)
		if err == nil {
			return reply, nil
		}
		if err := m.wait(ctx, attempt, err); err != nil {
			return nil, err
		}
		model.Retried(ctx)
	}
}

// attempt sends one request.
func (m *Model) attempt(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, *failure) {
	limited, cancel := context.WithTimeout(ctx, m.cfg.AttemptTimeout)
	defer cancel()
	ex := &exchange{contents: req.Contents, system: req.System, whole: delta == nil}
	out := &answer{stream: delta != nil}
	err := m.ask(withExchange(limited, ex), ex, req, out, delta)
	var told genai.APIError // by a gateway, in a form that genai does not read
	if read := out.read(ex.body.Bytes()); err == nil || ex.status == http.StatusOK && errors.As(read, &told) {
		err = read
	}
	if err != nil {
		return nil, m.explain(ctx, ex, err, out.shown)
	}
	reply, fail := out.reply(req)
	if fail != nil {
		return nil, &failure{fault: fail}
	}
	reply.Model = cmp.Or(reply.Model, m.named(req))
	return reply, nil
}

// ask sends the request and collects the answer. genai panics on some unexpected responses, such as a null body or
// candidates that are not a list. ask recovers from such a panic and reports the answer as unreadable.
func (m *Model) ask(ctx context.Context, ex *exchange, req model.Request, out *answer, delta func(string)) (err error) {
	defer func() {
		r := recover()
		if r != nil && out.passing {
			panic(r) // a panic of delta
		}
		if r != nil {
			err = errUnreadable
		}
	}()
	req.Settings.Thoughts = req.Settings.Thoughts && thinks(m.named(req))
	cfg, keep := m.settings.of(req, ex)
	defer keep()
	if delta == nil {
		_, err := m.client.Models.GenerateContent(ctx, m.named(req), nil, cfg)
		return err
	}
	think := model.ThoughtSink(ctx)
	for res, err := range m.client.Models.GenerateContentStream(ctx, m.named(req), nil, cfg) {
		if err != nil {
			return err
		}
		out.show(res, delta, think)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return ex.broken
}
