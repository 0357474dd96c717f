// Package mcptools provides the tools of the operator's MCP servers, which come and go. The servers are asked for their
// tools when these are first needed, all at once and in the background. A server that is down has no tools until it is
// back. A server that goes down keeps its known tools; their calls report that it is down.
package mcptools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/mcpclient"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
)

// Times of requests to servers.
const (
	askTime   = 10 * time.Second // maximum time for a server to connect and to list its tools
	firstWait = 3 * time.Second  // maximum time that a model waits for servers that were never asked before
	freshFor  = time.Minute      // time after which a list is requested again
	retryTime = 10 * time.Second // time after which a server that was down is asked again
)

// MaxTools is the maximum number of tools of all servers together.
const MaxTools = 128

// Options are the options of [Open].
type Options struct {
	Programs bool                     // stdio servers may be started; otherwise they are errors
	HTTP     *http.Client             // sends the requests to HTTP servers
	Lookup   func(name string) string // returns the values of references such as ${NAME}
	Log      *slog.Logger
	Now      func() time.Time
}

// Servers are the servers of a file. They are safe for concurrent use.
type Servers struct {
	all []*server
}

// Open returns the servers of a file. It contacts no server and starts no program. A server that cannot be used is left
// out, with a warning. If none can be used, Open returns the first error, a ValidationError with the field.
func Open(file []mcpfile.Server, o Options) (*Servers, error) {
	s := &Servers{}
	var wrong error
	for _, f := range file {
		one, err := open(f, o)
		if err != nil {
			wrong = cmp.Or(wrong, err)
			o.Log.Warn("an MCP server cannot be used", "server", f.Name, "error", f.LeftOut(err))
			continue
		}
		s.all = append(s.all, one)
	}
	if len(s.all) == 0 && wrong != nil {
		return nil, wrong
	}
	return s, nil
}

// Check returns the error that Open would return.
func Check(file []mcpfile.Server, o Options) error {
	s, err := Open(file, o)
	if err != nil {
		return err
	}
	return s.Close()
}

func open(f mcpfile.Server, o Options) (*server, error) {
	if f.Type == mcpfile.Stdio && !o.Programs {
		return nil, fault.Invalid(f.At+"/type", "must be http: only the local server starts programs")
	}
	f, err := f.Fill(o.Lookup)
	if err != nil {
		return nil, err
	}
	s := &server{name: f.Name, log: o.Log, now: o.Now, choice: mcpclient.Choice{Prefix: f.Prefix(), Reads: f.ReadOnly,
		Only: f.Only, Deny: f.Deny, Approval: tool.Approval(f.Approval), Named: f.Named}}
	c := mcpclient.Config{Name: f.Name, URL: f.URL, Dir: f.Dir, HTTP: o.HTTP, Header: http.Header{}, Log: o.Log,
		Timeout: askTime, Changed: s.outdate, Now: o.Now,
		Deaf: true} // an open stream is useless to a function that sleeps between its requests
	if f.Command != "" {
		c.Command = append([]string{f.Command}, f.Args...)
	}
	for name, value := range f.Headers {
		c.Header.Set(name, value)
	}
	for name, value := range f.Env {
		c.Env = append(c.Env, name+"="+value)
	}
	if s.client, err = mcpclient.New(c); err != nil {
		return nil, fault.Invalid(f.At, "%s", err)
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Tools returns the known tools without waiting. It starts requests to servers whose list is missing or out of date.
func (s *Servers) Tools() tool.Set {
	set := tool.Set{}
	for _, one := range s.all {
		one.ask(false)
		tools, _, _ := one.known()
		used := tools[:min(len(tools), MaxTools-len(set))]
		if len(used) < len(tools) {
			one.full(len(tools) - len(used))
		}
		for _, t := range used {
			set[t.Name] = t
		}
	}
	return set
}

// Report returns, for each server, which of its tools are in [Servers.Tools], and why the others are not.
func (s *Servers) Report() []tool.ServerTools {
	set, all := s.Tools(), []tool.ServerTools{}
	for _, one := range s.all {
		tools, unused, err := one.known()
		r := tool.ServerTools{Server: one.name, Tools: []string{}}
		for _, t := range tools {
			if set[t.Name] != nil {
				r.Tools = append(r.Tools, t.Name)
			} else {
				r.Unused = append(r.Unused, tool.UnusedTool{Tool: strconv.Quote(t.Name), Reason: errFull.Error()})
			}
		}
		for _, u := range unused {
			r.Unused = append(r.Unused, tool.UnusedTool{Tool: u.Tool, Reason: u.Why.Error()})
		}
		if err != nil {
			r.Problem = mcpclient.Why(err)
		}
		all = append(all, r)
	}
	return all
}

// errFull is the reason for tools that exceed the limit of all servers together.
var errFull = fmt.Errorf("all servers together offer more than %d tools; choose some with the setting only", MaxTools)

// Await waits up to 3 seconds for the servers that are asked for the first time.
func (s *Servers) Await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	for _, one := range s.all {
		one.ask(false)
	}
	for _, one := range s.all {
		select {
		case <-one.first():
		case <-ctx.Done():
			return
		}
	}
}

// Renew asks the server of the named tool for its tools, so that [Servers.Tools] returns the present definition. The
// error means that the server cannot be reached. It is nil for a name that belongs to no server.
func (s *Servers) Renew(ctx context.Context, name string) error {
	for _, one := range s.all {
		if !strings.HasPrefix(name, one.choice.Prefix) {
			continue
		}
		select {
		case <-one.ask(true):
			return one.unreachable()
		case <-ctx.Done():
			return one.unavailable(ctx.Err())
		}
	}
	return nil
}

// Close ends all connections and requests in progress.
func (s *Servers) Close() error {
	var errs []error
	for _, one := range s.all {
		one.end()
		errs = append(errs, one.client.Close())
		one.asking.Wait()
	}
	return errors.Join(errs...)
}

func (s *server) unavailable(err error) error {
	return tool.Transient(fault.New(fault.Tool, "server_unavailable",
		"The server %s cannot be reached at the moment. Nothing was done.", s.name).Because(err))
}

// full warns that some of the server's tools are not used, once for each number.
func (s *server) full(unused int) {
	if s.over.Swap(int64(unused)) != int64(unused) {
		s.log.Warn("tools of an MCP server are not used", "server", s.name, "unused", unused, "error", errFull)
	}
}
