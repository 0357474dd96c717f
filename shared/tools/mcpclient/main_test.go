package mcpclient_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/testkit/mcpservers"
)

// roleVariable names the variable that makes the test's program a server.
const roleVariable = "MCPCLIENT_ROLE"

func TestMain(m *testing.M) {
	mcpservers.Main()
	if role, ok := roles[os.Getenv(roleVariable)]; ok {
		role()
		return
	}
	leaktest.Main(m)
}

var roles = map[string]func(){
	"huge":     huge,
	"env":      env,
	"deaf":     deaf,
	"children": children,
	"flood":    flood,
}

func idOf(line string) string {
	_, after, _ := strings.Cut(line, `"id":`)
	end := strings.IndexAny(after, ",}")
	if end < 0 {
		return ""
	}
	return after[:end]
}

// note writes the line to LOG.
func note(line string) {
	f, err := os.OpenFile(os.Getenv("LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	check(err)
	_, err = f.WriteString(line)
	check(err)
	check(f.Close())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// handshake answers the client's first requests in the old protocol, and returns the next message.
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

// greet answers the requests that precede a call.
func greet(line string) {
	switch {
	case strings.Contains(line, `"server/discover"`):
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", idOf(line))
	case strings.Contains(line, `"initialize"`):
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},`+
			`"serverInfo":{"name":"x","version":"1"}}}`+"\n", idOf(line))
	case strings.Contains(line, `"tools/list"`):
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}}`+
			"\n", idOf(line))
	}
}

// env records the names of its environment variables, and is a server.
func env() {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		note(name + "\n")
	}
	handshake()
}

// huge answers a call with 100 MB in one line.
func huge() {
	_, line := handshake()
	note(line)
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, idOf(line))
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
	note(line)
	time.Sleep(time.Hour)
}

// children starts a process that outlives its parent unless it is killed, and then is a server that ignores the end of
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

// flood sends requests without end during a call, and reads no answers.
func flood() {
	_, line := handshake()
	note(line)
	for id := 1; ; id++ {
		if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":"x%d","method":"ping"}`+"\n", id); err != nil {
			return
		}
	}
}
