package crash

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/servers"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/tools/command"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
	"github.com/countersign-run/countersign/shared/tools/mcptools"
	"github.com/countersign-run/countersign/shared/tools/memory"
)

// order is the configuration of a worker.
type order struct {
	Settings    map[string]string
	Notes       string // URL of the provider without a handle
	Topic       string // URL of the topic for events
	ApprovalTTL time.Duration
	Skew        time.Duration // the error of this worker's clock
}

// stepTime limits a model call and an effect. It is short, so that the lease of a dead worker ends soon.
const (
	stepTime    = 900 * time.Millisecond
	leaseMargin = 150 * time.Millisecond
	leasePeriod = 2 * time.Second  // for commands, which take longer
	hostTime    = 20 * time.Second // limits connecting to a host, and each call there
)

// work runs a worker: all functions on one address. The parent sends orders, one a line:
//
//	arm N kill|stop|wait|none   count points from now on; at the N-th, exit, stop until SIGCONT, wait, or do nothing
//	points                      print the names of the points passed since
//	wake                        continue after SIGCONT or a wait
//
// It prints its address, and then one line in reply to each order. It prints "hit NAME" without an order.
func work(ctx context.Context, first proof.Order) error {
	debug.SetGCPercent(-1) // a worker lives for a second; garbage collection would take a sixth of that
	debug.SetMemoryLimit(512 << 20)
	var o order
	if err := first.Read(&o); err != nil {
		return err
	}
	p, answers := &points{}, os.Stdout
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	providers := struckCalls{http.DefaultTransport, p}
	http.DefaultTransport = providers // linked accounts use this transport
	open := app.Embedded
	app.Embedded = func(dir string, now func() time.Time) (store.Store, error) {
		st, err := open(dir, now)
		if err != nil {
			return nil, err
		}
		return p.paused(st), nil
	}
	getenv := func(name string) string { return o.Settings[name] }
	_, stop, err := testkit.Serve(ctx, ln, getenv, os.Stderr, p.answers, app.WithEnv(func(l *unit.Env) {
		l.Store, l.Queue, l.Model = faulty.Wrap(l.Store, p.stored), struckQueue{l.Queue, p}, struckModel{l.Model, p}
		l.Publisher = struckNotices{o.Topic, l.Console, &http.Client{Transport: providers.next, Timeout: stepTime}, p}
		l.LeaseMargin, l.LeasePeriod = leaseMargin, leasePeriod
		for _, a := range l.Agents {
			a.Limits.ModelTimeout, a.Limits.ToolTimeout, a.Limits.ApprovalTTL = stepTime, stepTime, o.ApprovalTTL
			if a.OnTerminal {
				a.Limits.ToolTimeout = hostTime
			}
		}
		l.Now = func() time.Time { return time.Now().Add(o.Skew) }
		p.mail(l)
		l.Sleep = shortened
		used := []*tool.Tool{l.Tools["gmail_send"], l.Tools["calendar_event_create"], l.Tools["calendar_event_delete"]}
		for _, name := range []string{command.Run, command.RunList, command.Complete, command.Ask,
			command.Upload} {
			if t := l.Tools[name]; t != nil {
				used = append(used, t)
			}
		}
		for name, t := range l.Tools {
			if strings.HasPrefix(name, "github.") || strings.HasPrefix(name, "docker.") {
				used = append(used, t)
			}
		}
		l.Tools = tool.NewSet(used...)
		testkit.Offer(l, note(providers, o.Notes))
		testkit.Offer(l, memory.New(l.Store)[memory.Remember])
	}), app.With(p.struckClients()), app.Replace(repositories.With(checksPause)),
		app.Replace(serversOver(&http.Client{Transport: providers})))
	if err != nil {
		return err
	}
	fmt.Fprintln(answers, "ready", "http://"+ln.Addr().String())
	return errors.Join(obey(p, os.Stdin, answers), stop())
}

// struckClients puts points around the connections that the earlier parts have opened.
func (p *points) struckClients() app.Part {
	return app.Part{Name: "struck", Open: func(_ context.Context, b *app.Builder) error {
		if b.Engine != nil {
			b.Engine = struckEngine{b.Engine, p}
		}
		if b.Hosts != nil {
			b.Hosts = struckHosts{b.Hosts, p}
		}
		return nil
	}}
}

// serversOver makes the operator's MCP servers use the client.
func serversOver(client *http.Client) app.Part {
	return app.Part{Name: servers.Part.Name, Servers: func(b *app.Builder, file []mcpfile.Server) error {
		s, err := mcptools.Open(file, mcptools.Options{HTTP: client, Lookup: b.Config.Referenced, Now: b.Now,
			Log: b.Log})
		if err != nil {
			return err
		}
		b.Env.Dynamic = s
		b.Closes(s)
		return nil
	}}
}

// errLong ends a sleep that would last until an approval can no longer be undone. No trial of the undo scenario waits
// that long.
var errLong = errors.New("too long a sleep for a trial")

// shortened waits a twentieth of the time between two attempts, but the whole time between two renewals of a lease.
func shortened(ctx context.Context, d time.Duration) error {
	if d > undoable/2 {
		return errLong
	}
	if d != leasePeriod/3 {
		d /= 20
	}
	return wait.For(ctx, d)
}

func obey(p *points, orders io.Reader, answers io.Writer) error {
	woken := make(chan struct{}, 1)
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		order := strings.Fields(lines.Text())
		switch {
		case len(order) == 3 && order[0] == "arm":
			n, err := strconv.Atoi(order[1])
			if err != nil {
				return err
			}
			p.arm(n, func(name string) { p.struck(order[2], name, answers, woken) })
			fmt.Fprintln(answers, "ok")
		case len(order) == 1 && order[0] == "wake":
			woken <- struct{}{}
			fmt.Fprintln(answers, "ok")
		case len(order) == 1 && order[0] == "points":
			fmt.Fprintln(answers, "ok", strings.Join(p.names(), ";"))
		default:
			return fmt.Errorf("unknown order: %q", lines.Text())
		}
	}
	return lines.Err()
}

// struck interrupts this process: it kills the process, stops it between two commits until it gets SIGCONT, or only
// waits to be woken. The signal can reach another thread first, so the goroutine then blocks.
func (p *points) struck(how, name string, answers io.Writer, woken <-chan struct{}) {
	signals := map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP}
	if how == "stop" {
		p.committing.Lock()
		defer p.committing.Unlock()
	}
	fmt.Fprintln(answers, "hit", name)
	if how != "wait" {
		if err := syscall.Kill(os.Getpid(), signals[how]); err != nil {
			panic(err) // a worker that cannot interrupt itself tests nothing
		}
	}
	<-woken
}

// noteArgs are the arguments of a tool whose provider has no handle. The provider stores every note that it receives, a
// repeated one twice, and cannot be queried.
type noteArgs struct {
	Text string `json:"text"`
}

type noted struct {
	OK bool `json:"ok"`
}

func note(provider http.RoundTripper, url string) *tool.Tool {
	return tool.Define(tool.Def[noteArgs, noted]{
		Name: "note", Description: "Leaves a note with a service that cannot be asked later.", SideEffect: true,
		Preview: func(a noteArgs) tool.Preview {
			return tool.Preview{Title: "Leave a note", Fields: []tool.Field{{Label: "Text", Value: a.Text}}}
		},
		Execute: func(ctx context.Context, c tool.Call, _ noteArgs) (noted,
			error) {
			return leave(ctx, provider, url, c)
		},
	})
}

func leave(ctx context.Context, provider http.RoundTripper, url string, c tool.Call) (noted, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(c.Args)))
	if err != nil {
		return noted{}, err
	}
	req.GetBody = nil // net/http must not resend the request
	req.Header.Set("Authorization", "Bearer "+c.UID)
	req.Header.Set("X-Action", c.ActionID)
	res, err := provider.RoundTrip(req)
	if err != nil {
		return noted{}, tool.Ambiguous(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		return noted{}, tool.Ambiguous(fmt.Errorf("the notes service returned status %d", res.StatusCode))
	}
	return noted{OK: true}, nil
}

// skewed returns an error for a clock, of up to ten minutes in either direction.
func skewed(r *rand.Rand) time.Duration {
	return time.Duration(r.Int64N(int64(20*time.Minute))) - 10*time.Minute
}
