// Command plan creates, refines and confirms plans, and decides about their cards.
//
//	go run ./scripts/plan start -repo URL [-by 6h] WISH  create a session, and print the plan
//	go run ./scripts/plan refine SESSION WORDS           ask for a change of the plan
//	go run ./scripts/plan confirm SESSION                print the plan, and run it if you type yes
//	go run ./scripts/plan list                           print your newest sessions
//	go run ./scripts/plan watch SESSION                  print each change, until the session needs you or ends
//	go run ./scripts/plan approve SESSION                print a card, and approve it if you type its hash
//	go run ./scripts/plan reject SESSION                 reject the card that waits
//	go run ./scripts/plan show SESSION                   print the session
//	go run ./scripts/plan log SESSION                    print each step with its reason
//	go run ./scripts/plan cancel SESSION                 cancel the session
//
// It uses the local server (go run ./scripts/dev) at PORT or -base, as the user -user. If -base is the URL of a
// deployment, COUNTERSIGN_TOKEN must be an ID token. Variables that are not set in the environment are read from .env.
// It exits with 0 on success, with 1 if the session failed or you did not type yes, and with 2 otherwise.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/config"
)

// errNo means that the result is negative and has been printed.
var errNo = errors.New("no")

const usage = "usage: plan start|refine|confirm|list|watch|approve|reject|show|log|cancel [flags] …; " +
	"COMMAND -h prints its flags"

const help = `usage: go run ./scripts/plan COMMAND [flags] ARGUMENTS

Creates, refines and confirms plans on the local server or a deployment, and decides about their cards.

  go run ./scripts/plan start "plan: fix the broken link of demo/site and open an issue about it, by tonight"
  go run ./scripts/plan refine SESSION make step 2 smaller
  go run ./scripts/plan confirm SESSION          prints the plan, and runs it if you type yes
  go run ./scripts/plan list
  go run ./scripts/plan watch SESSION            prints each change, until the session needs you or ends
  go run ./scripts/plan approve SESSION          prints the card that waits, and approves it if you type its hash
  go run ./scripts/plan reject SESSION
  go run ./scripts/plan show SESSION             (log SESSION also prints each step)
  go run ./scripts/plan cancel SESSION

COMMAND -h prints its flags.
`

// command is a parsed command line.
type command struct {
	name                 string
	base, user, repo, by string
	hash, card           string
	json                 bool
	wait, every          time.Duration
	args                 []string
	in                   *bufio.Reader
	out                  io.Writer
	getenv               func(string) string
	now                  func() time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	getenv, err := environment(".env", os.Getenv)
	if err == nil {
		err = execute(ctx, os.Args[1:], getenv, os.Stdin, os.Stdout, os.Stderr)
	}
	if ctx.Err() != nil && err != nil {
		err = errors.New("interrupted; the session is as it was, and continues on the server if it was running")
	}
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errNo):
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "plan:", err)
		os.Exit(2)
	}
}

func execute(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out, errs io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	if isHelp(args[0]) || args[0] == "help" {
		_, err := io.WriteString(out, help)
		return err
	}
	c := &command{name: args[0], in: bufio.NewReader(io.LimitReader(in, 4096)), out: out, getenv: getenv, now: time.Now,
		every: time.Second}
	do, least, most := c.do()
	if do == nil {
		return errors.New(usage)
	}
	f := flag.NewFlagSet("plan "+c.name, flag.ContinueOnError)
	f.SetOutput(errs)
	if slices.ContainsFunc(args[1:], isHelp) {
		f.SetOutput(out) // help goes to standard output
	}
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "usage: go run ./scripts/plan %s [flags] %s\n\n", c.name, c.takes())
		f.PrintDefaults()
		fmt.Fprintf(f.Output(), "\nexamples:\n%s", c.examples())
	}
	f.StringVar(&c.base, "base", "",
		"the server: the address of a local server, or the URL of a deployment (set COUNTERSIGN_TOKEN to an ID token) "+
			"(default: the local server at PORT or 8080)")
	f.StringVar(&c.user, "user", "ana", "the user of the local server")
	f.BoolVar(&c.json, "json", false, "print the session as JSON")
	f.DurationVar(&c.wait, "wait", time.Minute, "how long to wait for the session to finish or need you, at most 5m")
	switch c.name {
	case "start":
		f.StringVar(&c.repo, "repo", "", "the repository's URL (default: demo/site of the local server)")
		f.StringVar(&c.by, "by", "6h", "the deadline: a duration from now, or an RFC 3339 time")
	case "approve":
		f.StringVar(&c.hash, "yes-hash", "", "approve the card with this hash, without typing it")
		f.StringVar(&c.card, "card", "", "the approval ID of the card, if several wait")
	case "reject":
		f.StringVar(&c.card, "card", "", "the approval ID of the card, if several wait")
	case "confirm":
		f.StringVar(&c.hash, "hash", "", "confirm the plan with this hash, without typing yes")
		f.StringVar(&c.hash, "yes-hash", "", "the same as -hash")
		f.StringVar(&c.card, "card", "",
			"the approval ID of the card with that plan; needed if an earlier card showed the same plan")
	}
	var err error
	if c.args, err = parse(f, args[1:]); err != nil {
		return err
	}
	if len(c.args) < least || len(c.args) > most {
		return fmt.Errorf("usage: plan %s [flags] %s; got %d arguments", c.name, c.takes(), len(c.args))
	}
	if c.wait < 0 || c.wait > 5*time.Minute {
		return fmt.Errorf("-wait is %s; it must be 0 to 5m", c.wait)
	}
	return do(ctx)
}

// parse parses flags at any position, and returns the other arguments. Arguments after -- are never flags.
func parse(f *flag.FlagSet, args []string) (others []string, err error) {
	for {
		if err := f.Parse(args); err != nil || f.NArg() == 0 {
			return others, err
		}
		rest := f.Args()
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			return append(others, rest...), nil
		}
		others, args = append(others, rest[0]), rest[1:]
	}
}

func isHelp(arg string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, arg) }

func (c *command) do() (do func(context.Context) error, least, most int) {
	const words = 1 << 10
	switch c.name {
	case "start":
		return c.start, 1, words
	case "refine":
		return c.refine, 2, words
	case "confirm":
		return c.confirm, 1, 1
	case "list":
		return c.list, 0, 0
	case "watch":
		return c.watch, 1, 1
	case "approve", "reject":
		return c.decide, 1, 1
	case "show", "log":
		return c.show, 1, 1
	case "cancel":
		return c.cancel, 1, 1
	}
	return nil, 0, 0
}

// takes names the arguments after the flags.
func (c *command) takes() string {
	switch c.name {
	case "start":
		return "WISH"
	case "refine":
		return "SESSION WISH"
	case "list":
		return ""
	}
	return "SESSION"
}

// examples returns the lines of help that show this command.
func (c *command) examples() string {
	var lines strings.Builder
	for line := range strings.Lines(help) {
		if strings.HasPrefix(strings.TrimRight(line, "\n")+" ", "  go run ./scripts/plan "+c.name+" ") {
			lines.WriteString(line)
		}
	}
	return cmp.Or(lines.String(), "  go run ./scripts/plan "+c.name+" SESSION\n")
}

// typed returns the next line that the user types. At the end of the input, it returns the incomplete last line, if
// any.
func (c *command) typed(ctx context.Context) (string, error) {
	type input struct {
		line string
		err  error
	}
	read := make(chan input, 1)
	go func() {
		line, err := c.in.ReadString('\n')
		read <- input{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case got := <-read:
		if errors.Is(got.err, io.EOF) {
			got.err = nil
		}
		return strings.TrimSpace(got.line), got.err
	}
}

// deadline returns the deadline in the format of the API.
func (c *command) deadline() (string, error) {
	if d, err := time.ParseDuration(c.by); err == nil {
		return c.now().Add(d).UTC().Format(time.RFC3339), nil
	}
	if _, err := time.Parse(time.RFC3339, c.by); err != nil {
		return "", fmt.Errorf("-by is %q; it must be a duration such as 6h, or an RFC 3339 time", c.by)
	}
	return c.by, nil
}

// environment returns getenv with the values in the file as defaults. A missing file counts as empty.
func environment(file string, getenv func(string) string) (func(string) string, error) {
	all, err := config.ReadAssignments(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	values := map[string]string{}
	for _, a := range all {
		values[a.Name] = a.Value
	}
	return func(name string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return values[name]
	}, nil
}
