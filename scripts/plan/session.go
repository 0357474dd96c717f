package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/testkit"
)

const plans = "/api/agent/plans"

func (c *command) start(ctx context.Context) error {
	by, err := c.deadline()
	if err != nil {
		return err
	}
	if c.repo == "" && !c.local() {
		return errors.New("-repo is required if -base is a deployment")
	}
	return c.tell(ctx, http.MethodPost, plans, map[string]string{"prompt": strings.Join(c.args, " "), "deadline": by,
		"repoUrl": cmp.Or(c.repo, c.server()+"/dev/github/demo/site")})
}

func (c *command) refine(ctx context.Context) error {
	return c.tell(ctx, http.MethodPost, c.path("/refine"),
		map[string]string{"refinementPrompt": strings.Join(c.args[1:], " ")})
}

func (c *command) show(ctx context.Context) error {
	return c.tell(ctx, http.MethodGet, c.path(""), nil)
}

func (c *command) cancel(ctx context.Context) error {
	run := "/api/agent/runs/" + url.PathEscape(c.args[0])
	if _, _, err := c.send(ctx, http.MethodPost, run+"/cancel", nil); err != nil {
		return err
	}
	return c.show(ctx)
}

// confirm prints the plan and confirms exactly that plan: the one with the given hash, or the one that it printed.
func (c *command) confirm(ctx context.Context) error {
	if c.json && c.hash == "" {
		return errors.New("-json requires -hash: it does not ask you to confirm")
	}
	yes := map[string]string{"planHash": c.hash}
	if c.card != "" {
		yes["approvalId"] = c.card
	}
	if !c.json {
		s, body, err := c.send(ctx, http.MethodGet, c.path(""), nil)
		if err == nil {
			err = c.print(s, body)
		}
		if err != nil {
			return err
		}
		if c.hash == "" {
			yes["planHash"] = s.PlanHash
			for _, a := range s.Approvals {
				if a.ArgsHash == s.PlanHash {
					yes["approvalId"] = a.ApprovalID
				}
			}
			if err := c.agreed(ctx); err != nil {
				return err
			}
		}
	}
	return c.tell(ctx, http.MethodPost, c.path("/execute"), yes)
}

// agreed asks the user to type yes. The end of the input counts as no.
func (c *command) agreed(ctx context.Context) error {
	fmt.Fprint(c.out, "Confirm this plan? Type yes: ")
	line, err := c.typed(ctx)
	if err != nil || line == "yes" {
		return err
	}
	fmt.Fprintln(c.out, "Not confirmed.")
	return errNo
}

func (c *command) path(more string) string { return plans + "/" + url.PathEscape(c.args[0]) + more }

// server returns the server's URL. An address without a scheme gets http.
func (c *command) server() string {
	base := cmp.Or(c.base, "127.0.0.1:"+cmp.Or(c.getenv("PORT"), "8080"))
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	return strings.TrimSuffix(base, "/")
}

// local reports whether the server is on this machine.
func (c *command) local() bool {
	u, err := url.Parse(c.server())
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && at.IsLoopback()
}

// token returns the user's ID token. It signs in at a local server if COUNTERSIGN_TOKEN is not set.
func (c *command) token(ctx context.Context) (string, error) {
	switch t := c.getenv("COUNTERSIGN_TOKEN"); {
	case t != "" && c.base != "":
		return t, nil
	case !c.local():
		return "", errors.New("COUNTERSIGN_TOKEN is not set: set it to an ID token for the deployment")
	}
	a, err := testkit.Connect(nil, c.server(), "")(ctx, http.MethodPost, "/dev/token", map[string]string{"uid": c.user})
	if err != nil {
		return "", fmt.Errorf("the local server does not answer; start it with go run ./scripts/dev: %w", err)
	}
	var in struct{ Token string }
	if err := json.Unmarshal(a.Body, &in); err != nil || in.Token == "" {
		return "", fmt.Errorf("the local server did not sign in %q: status %d", c.user, a.HTTP)
	}
	return in.Token, nil
}

// send sends a request, and returns the session in the response.
func (c *command) send(ctx context.Context, method, path string, in any) (*planner.Session, []byte, error) {
	body, err := c.ask(ctx, method, path, in)
	if err != nil {
		return nil, nil, err
	}
	s := new(planner.Session)
	return s, body, json.Unmarshal(body, s)
}

// ask sends a request, and returns the body of the response.
func (c *command) ask(ctx context.Context, method, path string, in any) ([]byte, error) {
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.wait+time.Minute)
	defer cancel()
	a, err := testkit.Connect(nil, c.server(), token)(ctx, method, path, in,
		"Prefer", fmt.Sprintf("wait=%d", int(c.wait.Seconds())))
	if err != nil {
		return nil, err
	}
	if a.HTTP != http.StatusOK && a.HTTP != http.StatusAccepted {
		return nil, fmt.Errorf("%s: %s", cmp.Or(a.Error.Code, a.Error.Class, http.StatusText(a.HTTP)), a.Error.Message)
	}
	return a.Body, nil
}

func (c *command) tell(ctx context.Context, method, path string, in any) error {
	s, body, err := c.send(ctx, method, path, in)
	if err == nil {
		err = c.print(s, body)
	}
	if err == nil && (s.Status == "FAILED" || s.Status == "DEADLINE_EXCEEDED") {
		return errNo
	}
	return err
}

func (c *command) print(s *planner.Session, body []byte) error {
	if c.json {
		_, err := fmt.Fprintf(c.out, "%s\n", strings.TrimSpace(string(body)))
		return err
	}
	var b strings.Builder
	say := func(format string, args ...any) {
		shown, _ := visible.Text(fmt.Sprintf(format, args...))            // text from others must not move the cursor
		b.WriteString(strings.ReplaceAll(shown, "\n", "\n    | ") + "\n") // marks the text's further lines
	}
	say("session %s: %s, revision %d, until %s", s.SessionID, s.Status, s.Revision, s.Deadline.Format(time.RFC3339))
	for i, t := range s.Tasks {
		say("%d. [%s] %s", i+1, t.Status, t.Title)
		say("   %s", cmp.Or(t.Error, t.Result, t.Goal))
	}
	for _, g := range s.Grants {
		say("allowed: %s %s, %d of %d used", g.Tool, g.Target, g.Used, g.MaxCalls)
	}
	for _, q := range s.Questions {
		say("question: %s", q)
	}
	for _, a := range s.Approvals {
		say("waits: %s (%s)", a.Tool, a.ApprovalID)
		for _, f := range a.Preview.Fields {
			say("  %s: %s", f.Label, f.Value)
		}
		for _, w := range a.Preview.Warnings {
			say("  Warning: %s", w)
		}
		for _, f := range a.Findings {
			say("  Not in your own words: %s", strings.TrimSpace(f.Text+" "+f.Origin))
		}
		say("  hash %s", a.ArgsHash)
	}
	for _, a := range s.Artifacts {
		say("made: %s", a)
	}
	if c.name == "log" {
		for _, e := range s.Log {
			say("%s step %d: %s %s: %s", e.TaskID, e.Step, e.Action.Tool, e.ExecutionStatus, e.Reason)
		}
	}
	say("%s", s.Summary)
	say("hash %s", s.PlanHash)
	_, err := fmt.Fprint(c.out, b.String())
	return err
}
