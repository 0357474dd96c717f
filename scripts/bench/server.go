package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// server is a contestant's process.
type server struct {
	*contestant
	port   int
	model  string
	data   string
	proc   *exec.Cmd
	before float64 // CPU seconds of the processes before this one
	tokens map[string]string
}

func (s *server) base() string { return "http://127.0.0.1:" + strconv.Itoa(s.port) }

// start starts the process on its own core, and returns the milliseconds until it has answered a turn.
func (s *server) start(ctx context.Context) (ms float64, err error) {
	if err := os.MkdirAll(s.data, 0o755); err != nil {
		return 0, err
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command("taskset", append([]string{"-c", "1"}, s.command...)...)
	cmd.Env = append(os.Environ(), "PORT="+strconv.Itoa(s.port), "DATA_DIR="+s.data, "GOOGLE_GEMINI_BASE_URL="+s.model,
		"GEMINI_API_KEY=fake", "NODE_ENV=production", "GENKIT_ENV=prod")
	cmd.Env = append(cmd.Env, s.env...)
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	s.proc = cmd
	for {
		if err = s.first(ctx); err == nil {
			return float64(time.Since(began).Microseconds()) / 1000, nil
		}
		if time.Since(began) > time.Minute || ctx.Err() != nil {
			return 0, fmt.Errorf("no answer within a minute: %w", err)
		}
		time.Sleep(500 * time.Microsecond)
	}
}

// first requests a turn. A user signs in once; the token is also valid for the next process.
func (s *server) first(ctx context.Context) error {
	c, err := s.client(ctx, 0)
	if err != nil {
		return err
	}
	defer c.close()
	_, err = c.unit(text)
	return err
}

// client returns the n-th user's client.
func (s *server) client(ctx context.Context, n int) (*client, error) {
	c := &client{host: "127.0.0.1:" + strconv.Itoa(s.port), prompts: s.prompts, agents: s.agents}
	if s.signIn == nil {
		return c, nil
	}
	uid := "user" + strconv.Itoa(n)
	if s.tokens[uid] == "" {
		token, err := s.signIn(ctx, s.base(), uid)
		if err != nil {
			return nil, err
		}
		if s.tokens == nil {
			s.tokens = map[string]string{}
		}
		s.tokens[uid] = token
	}
	c.token = s.tokens[uid]
	return c, nil
}

// kill sends SIGKILL. It may be called again.
func (s *server) kill() {
	if s.proc == nil {
		return
	}
	s.before += cpu(s.proc.Process.Pid)
	_ = s.proc.Process.Kill() // it may have ended by itself
	_ = s.proc.Wait()
	s.proc = nil
}

// cpu returns the seconds of CPU time of all its processes.
func (s *server) cpu() float64 {
	if s.proc == nil {
		return s.before
	}
	return s.before + cpu(s.proc.Process.Pid)
}

func (s *server) log() string { return filepath.Join(filepath.Dir(s.data), s.name+".log") }

// output returns the end of the process's output.
func (s *server) output() []byte {
	out, _ := os.ReadFile(s.log())
	return bytes.TrimSpace(out[max(0, len(out)-2000):])
}
