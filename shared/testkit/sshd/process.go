package sshd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// variable is in the environment of all processes in the sessions of a server. It names the server.
const variable = "COUNTERSIGN_TEST_SSHD"

// A Process was started by a session of the server, directly or through another process.
type Process struct {
	PID  int
	Args string // its arguments, separated by spaces
}

func (p Process) String() string { return fmt.Sprintf("%d: %s", p.PID, p.Args) }

// Processes returns the running processes that sessions of the server have started. It finds them by their environment,
// so it includes processes that have left their session, but not those that have cleared both HOME and the other
// variables. A HOME that is not a directory, such as /dev/null, is ignored, because other processes may have it too.
func (s *Server) Processes() (all []Process) {
	marks := [][]byte{[]byte(variable + "=" + s.dir + "\x00")}
	if info, err := os.Stat(s.Home); err == nil && info.IsDir() {
		marks = append(marks, []byte("HOME="+s.Home+"\x00"))
	}
	for _, pid := range pids() {
		env, err := os.ReadFile(proc(pid, "environ"))
		marked := func(mark []byte) bool { return bytes.Contains(env, mark) }
		if err != nil || !slices.ContainsFunc(marks, marked) {
			continue
		}
		args, err := os.ReadFile(proc(pid, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		all = append(all, Process{pid, strings.TrimSpace(string(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))})
	}
	return all
}

// KillAll kills the processes that [Server.Processes] returns until none is left.
func (s *Server) KillAll() {
	var last []Process
	for range 100 { // programs that fork as fast as they are killed are left running
		all := s.Processes()
		if len(all) == 0 {
			return
		}
		if slices.Equal(all, last) { // they are killed, and a busy machine has yet to end them
			time.Sleep(10 * time.Millisecond)
		}
		last = all
		for _, p := range all {
			kill(p.PID)
		}
	}
}

// killServers kills the processes that belong to the server.
func killServers(pids []int) {
	for _, pid := range pids {
		name, err := os.ReadFile(proc(pid, "comm"))
		if err == nil && strings.HasPrefix(string(name), "sshd") {
			kill(pid)
		}
	}
}

// descendants returns the child processes of pid, their child processes, and so on.
func descendants(pid int) []int {
	children := map[int][]int{}
	for _, p := range pids() {
		stat, err := os.ReadFile(proc(p, "stat"))
		if err != nil {
			continue // it has ended
		}
		// The name, in brackets, may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], p)
		}
	}
	all := slices.Clone(children[pid])
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

func pids() (all []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // a system without /proc
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

func proc(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// kill kills a process unless it has ended.
func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Signal(syscall.SIGKILL)
	}
}
