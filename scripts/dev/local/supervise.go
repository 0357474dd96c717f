package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/countersign-run/countersign/scripts/dev/chaos"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// The variables with which this program starts itself for the page /chaos.
const (
	supervises = "DEV_SUPERVISES" // this process starts the server again after each kill that the page asks for
	killedFile = "DEV_KILLED"     // the server writes its process ID to this file before it kills itself
)

// supervised replaces this process with a supervisor, which runs the server as a process of its own. It works as a
// crash: nothing is saved before.
func supervised() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return become(self, os.Args, append(os.Environ(), supervises+"=1"))
}

// killed kills this process as kill -9 does. The supervisor starts it again. It returns nil without a supervisor.
func killed() func() {
	file := os.Getenv(killedFile)
	if file == "" {
		return nil
	}
	return func() {
		if os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600) != nil {
			return
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil && self.Kill() == nil {
			select {} // the process has ended before it continues
		}
	}
}

// supervise runs the server until it ends by itself or by another program, and starts it again after each kill that it
// asked for. It returns the server's exit code.
func supervise() (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	file := filepath.Join(newEnvironment(os.Getenv).get("DATA_DIR"), "killed")
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, supervises+"=") || strings.HasPrefix(v, "DEV_PARENT=")
	})
	env = append(env, killedFile+"="+file, "DEV_PARENT="+strconv.Itoa(os.Getpid()))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	for {
		server := exec.Command(self, os.Args[1:]...)
		server.Env, server.Stdin, server.Stdout, server.Stderr = env, os.Stdin, os.Stdout, os.Stderr
		if err := server.Start(); err != nil {
			return 1, err
		}
		ended := make(chan error, 1)
		go func() { ended <- server.Wait() }()
		for running := true; running; {
			select {
			case s := <-signals:
				_ = server.Process.Signal(s) // it may have ended
			case <-ended:
				running = false
			}
		}
		pid, err := os.ReadFile(file)
		if err != nil || string(pid) != strconv.Itoa(server.Process.Pid) {
			if code = server.ProcessState.ExitCode(); code < 0 { // a signal has ended it
				code = 1
			}
			return code, nil
		}
		if err := os.Remove(file); err != nil {
			return 1, err
		}
	}
}

// openChaos returns the panel that breaks this server.
func (s *server) openChaos() *chaos.Panel {
	kill := killed()
	var under func() error
	if kill == nil && replaces {
		under = supervised
	}
	return chaos.New(under, kill, func() *loop.Loop { return s.app.API.Loop })
}
