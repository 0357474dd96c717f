package mcpclient_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

// roleVariable makes the test's program another one: a server, or what stands between a server and its client.
const roleVariable = "MCPCLIENT_ROLE"

func TestMain(m *testing.M) {
	if role, ok := roles[os.Getenv(roleVariable)]; ok {
		role()
		return
	}
	leaktest.Main(m)
}

var roles = map[string]func(){
	"cut call":   func() { relay(false) },
	"cut answer": func() { relay(true) },
	"huge":       huge,
	"deaf":       deaf,
	"children":   children,
	"flood":      flood,
}

// relay runs the command that is its arguments and carries lines between it and the client. The first call of a tool
// kills the command and itself: as soon as the call was passed on, or when its answer is there. LOG gets a line for
// each call.
func relay(answered bool) {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	in, err := cmd.StdinPipe()
	check(err)
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	die := func() {
		_ = cmd.Process.Kill()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	call := make(chan string, 1) // the id of the call whose answer is the end
	go func() {
		lines := bufio.NewReader(os.Stdin)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				_ = in.Close()
				return
			}
			first := false
			if bytes.Contains(line, []byte(`"tools/call"`)) {
				first = note(line)
			}
			if first && answered {
				call <- idOf(line)
			}
			_, err = in.Write(line)
			check(err)
			if first && !answered {
				die()
			}
		}
	}()
	wanted := ""
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			_ = cmd.Wait()
			return
		}
		select {
		case wanted = <-call:
		default:
		}
		if wanted != "" && idOf(line) == wanted && !bytes.Contains(line, []byte(`"method"`)) {
			die()
		}
		_, err = os.Stdout.Write(line)
		check(err)
	}
}

func idOf(line []byte) string {
	_, after, _ := bytes.Cut(line, []byte(`"id":`))
	end := bytes.IndexAny(after, ",}")
	if end < 0 {
		return ""
	}
	return string(after[:end])
}

// note writes the line to LOG, and reports whether it is the first.
func note(line []byte) (first bool) {
	f, err := os.OpenFile(os.Getenv("LOG"), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	check(err)
	before, err := io.ReadAll(f)
	check(err)
	_, err = f.Write(line)
	check(err)
	check(f.Close())
	return len(before) == 0
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// handshake answers the client's first questions in the old way, and returns what comes after them.
func handshake() (*bufio.Reader, string) {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		check(err)
		if greet(line); strings.Contains(line, `"tools/call"`) {
			return lines, line
		}
	}
}

// greet answers what comes before a call.
func greet(line string) {
	switch {
	case strings.Contains(line, `"server/discover"`):
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", idOf([]byte(line)))
	case strings.Contains(line, `"initialize"`):
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},`+
			`"serverInfo":{"name":"x","version":"1"}}}`+"\n", idOf([]byte(line)))
	case strings.Contains(line, `"tools/list"`):
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}}`+
			"\n", idOf([]byte(line)))
	}
}

// huge answers a call with 100 MB in one line.
func huge() {
	_, line := handshake()
	note([]byte(line))
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, idOf([]byte(line)))
	chunk := bytes.Repeat([]byte("a"), 1<<20)
	for range 100 {
		if _, err := os.Stdout.Write(chunk); err != nil {
			return
		}
	}
	fmt.Println(`"}]}}`)
}

// deaf stops reading at the first call, and never answers.
func deaf() {
	_, line := handshake()
	note([]byte(line))
	time.Sleep(time.Hour)
}

// children starts a process that outlives its parent if nobody kills it, and then is a server that ignores the end of
// its input. Both hold the pipe FIFO open.
func children() {
	fifo, err := os.OpenFile(os.Getenv("FIFO"), os.O_WRONLY, 0)
	check(err)
	cmd := exec.Command("sleep", "600")
	cmd.Stdout = fifo
	check(cmd.Start())
	for lines := bufio.NewReader(os.Stdin); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			time.Sleep(time.Hour)
		}
		greet(line)
	}
}

// flood asks for things at a call, without end, and reads no answers.
func flood() {
	_, line := handshake()
	note([]byte(line))
	for id := 1; ; id++ {
		if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":"x%d","method":"ping"}`+"\n", id); err != nil {
			return
		}
	}
}
