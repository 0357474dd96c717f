package api

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/countersign-run/countersign/shared/accounts/agenttoken"
	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// AgentDoor serves agents of other programs over MCP (shared/api/mcpserver).
type AgentDoor interface {
	// Serve answers one request of an agent. The runs that it starts take their user, e-mail address and agent from as.
	// hold counts the streams that the user has open.
	Serve(w http.ResponseWriter, r *http.Request, as loop.StartRequest, hold func() (leave func(), err error))
}

// postMCP serves an agent of another program. The bearer is either a token that the user created here or an OAuth
// access token issued for this resource. No other token is accepted, and these tokens are accepted nowhere else.
func postMCP(r *request) (any, error) {
	leave, err := r.api.admit()
	if err != nil {
		return nil, err
	}
	defer leave()
	token, err := auth.Bearer(r.Request)
	if err != nil {
		return nil, err
	}
	as, err := r.agent(token)
	if err != nil {
		return nil, err
	}
	r.uid = as.UID
	obs.SetUser(r.Context(), r.uid)
	if r.api.AgentDoor == nil {
		return nil, errNoSuchPath()
	}
	body, err := r.json()
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.api.AgentDoor.Serve(r.w, r.Request, as, func() (func(), error) { return r.api.hold(r.uid) })
	return nil, nil
}

// agent returns the user and the agent that the token identifies: a token that the user created here, or an access
// token of the issuer. An access token's e-mail address counts only if the issuer has verified it. Without a verified
// address, the address stored for the user is kept.
func (r *request) agent(token string) (as loop.StartRequest, err error) {
	if r.api.Agents == nil || strings.HasPrefix(token, agenttoken.Prefix) {
		uid, t, err := r.api.Records.Bearer(r.Context(), token)
		return loop.StartRequest{UID: uid, DelegatedBy: &run.Delegate{TokenID: t.ID, Name: t.Name}}, err
	}
	id, err := r.api.Agents.Token(r.Context(), token)
	if err != nil {
		return as, err
	}
	name, _ := visible.Line(id.Client)
	as = loop.StartRequest{UID: id.UID,
		DelegatedBy: &run.Delegate{TokenID: run.ClientID(id.Client), Name: clip.Text(name, agenttoken.MaxName)}}
	if email := emailOf(id); email != nil && *email != "" {
		as.Email = email
	}
	return as, r.api.Records.CheckReader(r.Context(), id.UID)
}

// resourcePath is the path of the resource's metadata (RFC 9728 §3.1). The resource's own path is appended to it.
const resourcePath = "/.well-known/oauth-protected-resource"

// challenge returns the WWW-Authenticate header of a refused request (RFC 6750 §3). At /mcp it also names the metadata,
// where an agent finds the issuer of tokens (RFC 9728 §5.1).
func (a *API) challenge(r *http.Request) string {
	challenge := `Bearer realm="countersign"`
	if at, err := url.Parse(a.MCPURL); err == nil && a.Agents != nil && r.URL.Path == "/mcp" {
		at.Path = resourcePath + at.Path
		challenge += `, resource_metadata="` + at.String() + `"`
	}
	return challenge
}

// resource is the metadata of /mcp as an OAuth resource (RFC 9728 §2).
type resource struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

func getResource(r *request) (any, error) {
	if r.api.Agents == nil {
		return nil, errNoSuchPath()
	}
	return resource{r.api.MCPURL, []string{r.api.Agents.Issuer()}, []string{"header"}, "Countersign"}, nil
}

func postToken(r *request) (any, error) {
	var in struct {
		Name string `json:"name"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	email := r.email // stored, for reminders to users who ask only through agents
	if !r.api.Loop.Reminding.On() {
		email = nil
	}
	id, token, err := r.api.Records.AddToken(ctx, r.uid, in.Name, email)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		TokenID string `json:"tokenId"`
		Token   string `json:"token"`
	}{ok{true}, id, token}, nil
}

func getTokens(r *request) (any, error) {
	tokens, err := r.api.Records.Tokens(r.Context(), r.uid)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Tokens []records.TokenView `json:"tokens"`
	}{ok{true}, tokens}, nil
}

func deleteToken(r *request) (any, error) {
	id, err := r.id("tokenId")
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	return ok{true}, r.api.Records.RevokeToken(ctx, r.uid, id)
}
