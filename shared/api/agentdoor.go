package api

import (
	"bytes"
	"io"
	"net/http"

	"github.com/countersign-run/countersign/shared/auth"
	"github.com/countersign-run/countersign/shared/obs"
	"github.com/countersign-run/countersign/shared/records"
	"github.com/countersign-run/countersign/shared/run"
)

// AgentDoor serves the agents of other programs (shared/mcpserver).
type AgentDoor interface {
	// Serve answers one request of the agent via, which acts for the user. hold counts what the user holds open.
	Serve(w http.ResponseWriter, r *http.Request, uid string, via run.Via, hold func() (leave func(), err error))
}

// postMCP serves an agent of another program with the token that its user has given it. No other token opens this, and
// that token opens nothing else.
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
	uid, t, err := r.api.Records.Bearer(r.Context(), token)
	if err != nil {
		return nil, err
	}
	r.uid = uid
	obs.SetUser(r.Context(), uid)
	if r.api.AgentDoor == nil {
		return nil, errNoSuchPath()
	}
	body, err := r.json()
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.api.AgentDoor.Serve(r.w, r.Request, uid, run.Via{TokenID: t.ID, Name: t.Name},
		func() (func(), error) { return r.api.hold(uid) })
	return nil, nil
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
	id, token, err := r.api.Records.AddToken(ctx, r.uid, in.Name)
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
