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

// AgentDoor serves the agents of other programs (shared/api/mcpserver).
type AgentDoor interface {
	// Serve answers one request of an agent. What it asks for begins as it is said by as: for the user, at their
	// address, by the agent. hold counts what the user holds open.
	Serve(w http.ResponseWriter, r *http.Request, as loop.StartRequest, hold func() (leave func(), err error))
}

// postMCP serves an agent of another program with the token that its user has given it, or with an access token that is
// for this alone. No other token opens this, and these open nothing else.
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

// agent returns whose agent has the token: one that its user has made here, or an access token of the issuer. Such a
// token may say an address, and is believed where it vouches for that; what it does not vouch for takes none away.
func (r *request) agent(token string) (as loop.StartRequest, err error) {
	if r.api.Agents == nil || strings.HasPrefix(token, agenttoken.Prefix) {
		uid, t, err := r.api.Records.Bearer(r.Context(), token)
		return loop.StartRequest{UID: uid, Via: &run.Via{TokenID: t.ID, Name: t.Name}}, err
	}
	id, err := r.api.Agents.Token(r.Context(), token)
	if err != nil {
		return as, err
	}
	name, _ := visible.Line(id.Client)
	as = loop.StartRequest{UID: id.UID,
		Via: &run.Via{TokenID: run.ClientID(id.Client), Name: clip.Text(name, agenttoken.MaxName)}}
	if email := emailOf(id); email != nil && *email != "" {
		as.Email = email
	}
	return as, r.api.Records.CheckReader(r.Context(), id.UID)
}

// resourcePath is where the resource's metadata are (RFC 9728 §3.1); before the resource's own path.
const resourcePath = "/.well-known/oauth-protected-resource"

// challenge returns what a refused client is told (RFC 6750 §3); an agent also where it learns who issues tokens
// (RFC 9728 §5.1).
func (a *API) challenge(r *http.Request) string {
	challenge := `Bearer realm="countersign"`
	if at, err := url.Parse(a.MCPURL); err == nil && a.Agents != nil && r.URL.Path == "/mcp" {
		at.Path = resourcePath + at.Path
		challenge += `, resource_metadata="` + at.String() + `"`
	}
	return challenge
}

// resource is the metadata of /mcp as a resource of OAuth (RFC 9728 §2).
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
	email := r.email // whoever asks by their agents alone is mailed there
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
