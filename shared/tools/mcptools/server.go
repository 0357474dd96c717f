package mcptools

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/mcpclient"
)

// A server is one MCP server with its known tools.
type server struct {
	name   string
	client *mcpclient.Client
	choice mcpclient.Choice
	log    *slog.Logger
	now    func() time.Time
	life   context.Context // ends with Close
	end    context.CancelFunc
	asking sync.WaitGroup
	over   atomic.Int64 // the last logged number of tools that are not used because of other servers

	mu      sync.Mutex
	tools   []*tool.Tool // as last listed
	unused  []mcpclient.Refusal
	under   chan struct{} // closed when the server has answered or failed; nil: no request is in progress
	initial chan struct{} // the first such channel; nil: it was never asked
	ended   time.Time     // when it last answered or failed
	err     error         // why it failed
	old     bool          // it has reported a change of its tools
}

// known returns the server's tools, its unused tools, and the error of the last request.
func (s *server) known() ([]*tool.Tool, []mcpclient.Refusal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools, s.unused, s.err
}

// first returns a channel that is closed when the server has answered or failed for the first time.
func (s *server) first() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initial
}

// unreachable returns an error if the server was not reached in the last request, or nil.
func (s *server) unreachable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return s.unavailable(s.err)
}

// outdate makes the next use of the list ask the server again.
func (s *server) outdate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = true
}

// ask requests the server's tools, unless a request is in progress or the list is recent. now requests them even if the
// list is recent. The returned channel is closed when the server has answered or failed.
func (s *server) ask(now bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under != nil {
		return s.under
	}
	wait := freshFor
	if s.err != nil {
		wait = retryTime
	}
	done := make(chan struct{})
	if s.initial != nil && !now && !s.old && s.now().Sub(s.ended) < wait || s.life.Err() != nil {
		close(done)
		return done
	}
	s.under, s.old = done, false
	if s.initial == nil {
		s.initial = done
	}
	s.asking.Go(func() {
		defer close(done)
		s.list()
	})
	return done
}

// list asks the server and stores its answer.
func (s *server) list() {
	ctx, cancel := context.WithTimeout(s.life, askTime)
	defer cancel()
	tools, refused, err := s.client.Tools(ctx, s.choice)
	s.mu.Lock()
	defer s.mu.Unlock()
	before, first := s.err, s.ended.IsZero()
	s.under, s.ended, s.err = nil, s.now(), nil
	if tools == nil && err != nil {
		s.err = err
		if (before == nil || first) && s.life.Err() == nil {
			s.log.Warn("an MCP server cannot be used; its new tools appear once it is available",
				"server", s.name, "error", mcpclient.Why(err))
		}
		return
	}
	news := first || before != nil || len(tools) != len(s.tools) || len(refused) != len(s.unused)
	s.tools, s.unused = tools, refused
	if !news {
		return
	}
	s.log.Info("an MCP server's tools can be used", "server", s.name, "tools", len(tools))
	s.tell(refused)
	if err != nil {
		s.log.Warn("an MCP server lacks tools that MCP_SERVERS names", "server", s.name, "error", err)
	}
}

// tell logs the unused tools: an invalid tool by name, and the number of tools beyond the limit.
func (s *server) tell(unused []mcpclient.Refusal) {
	beyond := 0
	for _, r := range unused {
		if errors.Is(r.Why, mcpclient.ErrBeyond) {
			beyond++
			continue
		}
		s.log.Warn("a tool of an MCP server cannot be used", "server", s.name, "tool", r.Tool, "error", r.Why)
	}
	if beyond > 0 {
		s.log.Warn("an MCP server offers more tools than are used", "server", s.name, "unused", beyond, "error",
			mcpclient.ErrBeyond)
	}
}
