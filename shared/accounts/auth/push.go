package auth

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// VerifiedBy says where the signature of a push token is checked (contract §3, PUSH_VERIFIED_BY).
type VerifiedBy string

// The values of VerifiedBy.
const (
	ByApp      VerifiedBy = "app"      // this process: the default, and correct everywhere
	ByPlatform VerifiedBy = "platform" // Cloud Run, on a private function: it has checked and removed the signature
)

// PushConfig configures the callers that the resume and sweep functions accept.
type PushConfig struct {
	Issuer         string           // empty means Google, whose two spellings are equivalent
	Audience       string           // exact; may be empty only with ByPlatform, where Cloud Run has checked it
	ServiceAccount string           // exact e-mail address of the push service account
	VerifiedBy     VerifiedBy       // empty means ByApp
	OnCloudRun     bool             // whether K_SERVICE is set: ByPlatform is refused anywhere else
	HTTPClient     *http.Client     // as in Config
	Now            func() time.Time // as in Config
}

// PushVerifier checks the tokens that Pub/Sub and Cloud Scheduler send. It is safe for concurrent use.
type PushVerifier struct {
	tokens *checker
	cfg    PushConfig
}

// NewPush returns a PushVerifier. The error names the invalid setting.
func NewPush(cfg PushConfig) (*PushVerifier, error) {
	name, host, _ := strings.Cut(cfg.ServiceAccount, "@")
	if name == "" || !strings.Contains(host, ".") || strings.ContainsAny(cfg.ServiceAccount, "* ,;") {
		return nil, fmt.Errorf("auth: the push service account %q must be one exact e-mail address", cfg.ServiceAccount)
	}
	if cfg.Issuer == "" {
		cfg.Issuer = google
	}
	switch cfg.VerifiedBy {
	case "", ByApp:
		if cfg.Audience == "" {
			return nil, errNoAudience
		}
	case ByPlatform:
		if !cfg.OnCloudRun {
			return nil, fmt.Errorf("auth: push tokens verified by %q need Cloud Run in front of this process",
				ByPlatform)
		}
	default:
		return nil, fmt.Errorf("auth: push tokens can be verified by %q or %q, not by %q", ByApp, ByPlatform,
			cfg.VerifiedBy)
	}
	tokens, err := newChecker(cfg.Issuer, cfg.Audience, cfg.HTTPClient, cfg.Now)
	if err != nil {
		return nil, err
	}
	return &PushVerifier{tokens: tokens, cfg: cfg}, nil
}

// Check returns nil if the request has a token of the push service account, for this service's audience, with a
// verified address. Otherwise it returns AuthError unauthenticated (401), also for a genuine token of another service
// account (hostile case JW-038). It returns ToolExecutionError issuer_unavailable if the keys cannot be fetched at the
// moment.
func (p *PushVerifier) Check(r *http.Request) error {
	raw, err := Bearer(r)
	if err == nil {
		err = checkLength(raw)
	}
	if err != nil {
		return err
	}
	c, err := p.claims(r, raw)
	if err != nil {
		return err
	}
	if c.Email != p.cfg.ServiceAccount || !c.emailVerified() {
		return unauthenticated("The token is not the push service account's.")
	}
	return nil
}

func (p *PushVerifier) claims(r *http.Request, raw string) (claims, error) {
	if p.cfg.VerifiedBy != ByPlatform {
		return p.tokens.verify(r.Context(), raw)
	}
	// If this header is present, Cloud Run checks it and passes Authorization on unchecked
	// (https://docs.cloud.google.com/run/docs/authenticating/service-to-service).
	if r.Header.Values("X-Serverless-Authorization") != nil {
		return claims{}, unauthenticated("X-Serverless-Authorization cannot be used here.")
	}
	head, rest, _ := strings.Cut(raw, ".")
	body, _, _ := strings.Cut(rest, ".")
	// The signature is left out, because Cloud Run has removed or replaced it.
	_, payload, _, ok := split(head + "." + body + ".")
	var got claims
	if !ok || strings.Count(raw, ".") != 2 || json.Unmarshal(payload, &got) != nil {
		return claims{}, unauthenticated("This is not an ID token.")
	}
	return got, p.tokens.checkClaims(got)
}
