package issuer

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// The limits for programs that register.
const (
	maxPrograms   = 100 // beyond that, the oldest is forgotten
	maxRedirects  = 10
	maxName       = 100
	agentLifetime = 30 * 24 * time.Hour // after that, the user has to agree again
)

// Agents are the programs that act for users at a resource. Each one registers itself (RFC 7591), asks its user for
// consent, and gets access tokens for this resource only (RFC 8707).
type Agents struct {
	Resource string                        // the address that tokens are for
	File     string                        // holds the programs that have registered
	SignedIn func(uid, email string) error // called for each user; may refuse one
}

// ServeAgents lets programs register for the resource and get tokens of users who agree.
func (i *Issuer) ServeAgents(a Agents) error {
	i.programs = &programs{Agents: a}
	if err := i.programs.open(); err != nil {
		return err
	}
	i.serveSignIn()
	i.mux.HandleFunc("POST "+i.path()+"/register", i.register)
	return nil
}

// programs are the registered programs. It is safe for concurrent use.
type programs struct {
	Agents
	mu  sync.Mutex
	all []program // the oldest first
}

// program is a public client (RFC 7591 §2).
type program struct {
	ID        string   `json:"client_id"`
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris"`
}

func (p *programs) open() error {
	data, err := os.ReadFile(p.File)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &p.all)
	}
	return err
}

// get returns the program with this ID.
func (p *programs) get(id string) (found program, ok bool) {
	if p == nil {
		return program{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.all, func(a program) bool { return a.ID == id })
	if at < 0 {
		return program{}, false
	}
	return p.all[at], true
}

// add stores a program durably: it writes a new file and renames it.
func (p *programs) add(a program) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append(slices.Clone(p.all), a)
	all = all[max(0, len(all)-maxPrograms):]
	data, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(p.File+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(p.File+".new", p.File)
	}
	if err == nil {
		p.all = all
	}
	return err
}

// register registers a program. It uses only the name and the redirect addresses of the request.
func (i *Issuer) register(w http.ResponseWriter, r *http.Request) {
	var a program
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10)).Decode(&a)
	switch {
	case err != nil || len(a.Name) > maxName || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		refuse(w, "invalid_client_metadata")
		return
	case len(a.Redirects) == 0 || len(a.Redirects) > maxRedirects || slices.ContainsFunc(a.Redirects, notForCodes):
		refuse(w, "invalid_redirect_uri")
		return
	}
	a.ID = named(a.Name) + "-" + strings.ToLower(rand.Text()[:8])
	if err := i.programs.add(a); err != nil {
		http.Error(w, "the program could not be stored", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	answer(w, map[string]any{"client_id": a.ID, "client_name": a.Name, "redirect_uris": a.Redirects,
		"token_endpoint_auth_method": "none", "response_types": []string{"code"},
		"grant_types": []string{"authorization_code", "refresh_token"}, "client_id_issued_at": i.now().Unix()})
}

// named returns the beginning of a program's ID: the characters of its name that an ID can contain.
func named(name string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_':
			return r
		case r == ' ' || r == '-':
			return '-'
		}
		return -1
	}, name)
	return cmp.Or(strings.Trim(id, "-"), "program")
}

// notForCodes reports whether codes cannot be sent to an address: it needs https or a host on this machine.
func notForCodes(address string) bool {
	u, err := url.Parse(address)
	return err != nil || len(address) > 2000 || u.Fragment != "" || u.Host == "" || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname()))
}

func loopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// redirects reports whether a code for the program may be sent to an address. A program on this machine may listen at
// another port each time (RFC 8252 §7.3).
func (a program) redirects(address string) bool {
	return slices.ContainsFunc(a.Redirects, func(known string) bool {
		return known == address || anyPort(known) != "" && anyPort(known) == anyPort(address)
	})
}

// anyPort returns a loopback address without its port, or "".
func anyPort(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || !loopback(u.Hostname()) || u.User != nil {
		return ""
	}
	u.Host = u.Hostname()
	return u.String()
}

// accessTokens returns an access token (RFC 9068 §2.2) and a refresh token of a user for a program.
func (i *Issuer) accessTokens(uid, id string) (map[string]any, error) {
	now := i.now()
	claims := func(audience string, lifetime time.Duration) map[string]any {
		return map[string]any{"iss": i.url, "sub": uid, "aud": audience, "client_id": id, "iat": now.Unix(),
			"exp": now.Add(lifetime).Unix()}
	}
	access, err := i.Sign(claims(i.programs.Resource, tokenLifetime))
	if err != nil {
		return nil, err
	}
	refresh, err := i.Sign(claims(i.url+"/token", agentLifetime))
	if err != nil {
		return nil, err
	}
	return map[string]any{"access_token": access, "token_type": "Bearer", "refresh_token": refresh,
		"expires_in": int(tokenLifetime.Seconds())}, nil
}

// refreshed returns the user of a refresh token that this issuer issued to the program.
func (i *Issuer) refreshed(token, id string) (uid string, err error) {
	var c struct {
		Subject  string `json:"sub"`
		Audience string `json:"aud"`
		ClientID string `json:"client_id"`
		Expires  int64  `json:"exp"`
	}
	payload, err := i.verified(token)
	if err == nil {
		err = json.Unmarshal(payload, &c)
	}
	_, known := i.programs.get(id)
	if err != nil || !known || c.Audience != i.url+"/token" || c.ClientID != id || i.now().Unix() >= c.Expires {
		return "", fmt.Errorf("issuer: no refresh token of %q", id)
	}
	return c.Subject, nil
}
