package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
)

// Login describes how to log in to a server (see package sshd).
type Login struct {
	Addr     string // host:port
	User     string
	Key      []byte // the private key, as a file of OpenSSH
	HostKeys []ssh.PublicKey
}

// AddHost adds the server to the user's hosts and returns the host's ID. more are additional fields of the request,
// such as autoRun.
func (c Client) AddHost(ctx context.Context, l Login, more map[string]any) (hostID string, err error) {
	host, port, err := net.SplitHostPort(l.Addr)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return "", err
	}
	var keys []terminal.HostKey
	for _, k := range l.HostKeys {
		keys = append(keys, remote.HostKey(k))
	}
	body := map[string]any{"name": "web", "host": host, "port": n, "username": l.User, "hostKeys": keys,
		"auth": map[string]string{"kind": "privateKey", "privateKey": string(l.Key)}}
	for name, v := range more {
		body[name] = v
	}
	return c.made(ctx, "/api/agent/hosts", body, "hostId")
}

// OpenTerminal opens a terminal on the user's host and returns the terminal's ID.
func (c Client) OpenTerminal(ctx context.Context, hostID string) (terminalID string, err error) {
	return c.made(ctx, "/api/agent/terminals", map[string]any{"hostId": hostID, "cols": 80, "rows": 24}, "terminalId")
}

// made posts a request and returns the ID of the created resource.
func (c Client) made(ctx context.Context, path string, body any, name string) (id string, err error) {
	a, err := c(ctx, http.MethodPost, path, body)
	if err != nil {
		return "", err
	}
	var fields map[string]any
	if err := json.Unmarshal(a.Body, &fields); err != nil {
		return "", err
	}
	if id, _ = fields[name].(string); a.HTTP/100 != 2 || id == "" {
		return "", fmt.Errorf("POST %s: %d %s", path, a.HTTP, a.Body)
	}
	return id, nil
}

// AskOn starts a run of an agent on the terminal. An empty agent is left out of the request.
func (c Client) AskOn(ctx context.Context, terminalID, agent, prompt string, header ...string) (Answer, error) {
	body := map[string]string{"prompt": prompt, "terminalId": terminalID}
	if agent != "" {
		body["agent"] = agent
	}
	return c(ctx, http.MethodPost, "/api/agent/run", body, header...)
}

// Command returns the arguments of a command.
func Command(line string) map[string]any {
	return map[string]any{"command": line, "reasoning": "To see."}
}

// Commands returns the arguments of a list of commands.
func Commands(lines ...string) map[string]any {
	commands := make([]map[string]any, len(lines))
	for i, line := range lines {
		commands[i] = map[string]any{"command": line}
	}
	return map[string]any{"commands": commands, "reasoning": "To see."}
}
