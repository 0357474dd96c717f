package mcptools

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/mcpclient"
	"github.com/countersign-run/countersign/shared/tool"
)

// A server is one of them, and what is known of its tools.
type server struct {
	name   string
	client *mcpclient.Client
	choice mcpclient.Choice
	log    *slog.Logger
	now    func() time.Time
	life   context.Context // until Close
	end    context.CancelFunc
	asking sync.WaitGroup
	over   atomic.Int64 // how many of its tools are not used because of other servers, as was last logged

	mu      sync.Mutex
	tools   []*tool.Tool // as they were last listed
	unused  []mcpclient.Refusal
	under   chan struct{} // closed when the server has answered or failed; nil: it is not being asked
	initial chan struct{} // the first such; nil: it was never asked
	ended   time.Time     // when it last answered or failed
	err     error         // why it failed
	old     bool          // it has said that its tools have changed
}

// known returns the tools that the server has, those of it that are not used, and why it was not reached when it was
// last asked.
func (s *server) known() ([]*tool.Tool, []mcpclient.Refusal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools, s.unused, s.err
}

// first returns what is closed when the server has answered or failed for the first time.
func (s *server) first() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initial
}

// unreachable returns why the server was not reached when it was last asked, or nil.
func (s *server) unreachable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return s.unavailable(s.err)
}

// outdate has the server be asked before its list is used again.
func (s *server) outdate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = true
}

// ask has the server be asked for its tools, unless it is being asked, or was a moment ago and now does not say
// otherwise. What it returns is closed when the server has answered or failed.
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

// list asks the server, and keeps what it says.
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
			s.log.Warn("an MCP server cannot be used; until it can, tools of it that are not known yet are absent",
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

// tell logs which tools are not used: one that cannot be taken by its name, and how many were left over.
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
