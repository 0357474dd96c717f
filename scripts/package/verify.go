package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/freeport"
	"github.com/countersign-run/countersign/shared/tools/action"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
)

// sourceFolder is the folder that the cloud's build moves an archive's files to. A function starts in the parent
// folder.
const sourceFolder = "serverless_function_source_code"

const answerWithin = 30 * time.Second

// times holds the durations of a verification, and the names of actions without a handler.
type times struct {
	built, answered time.Duration
	unbound         []string // the operator's actions that have neither an endpoint nor Go code
}

// verify builds and starts an archive as the cloud does, and requests /health.
func verify(ctx context.Context, e entry, archive []byte) (t times, err error) {
	p, err := build(ctx, e, archive)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	f, err := p.start(ctx)
	if err != nil {
		return t, err
	}
	f.stop()
	t = times{built: p.built, answered: f.answered}
	t.unbound, err = p.declared.unbound(f.health)
	return t, err
}

// program is a built archive in a separate folder.
type program struct {
	dir, bin, entryPoint string
	declared             declared
	built                time.Duration
}

// build checks the archive's layout, tidies it and builds it. A change that the cloud would make is an error, because
// the deployed code would differ from the tested code.
func build(ctx context.Context, e entry, archive []byte) (p program, err error) {
	content, err := unpack(archive)
	if err != nil {
		return p, err
	}
	module, err := layout(content)
	if err != nil {
		return p, err
	}
	if p.dir, err = os.MkdirTemp("", "verify"); err != nil {
		return p, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.remove())
		}
	}()
	p.bin, p.entryPoint = filepath.Join(p.dir, "main"), e.EntryPoint
	src := filepath.Join(p.dir, sourceFolder)
	if err := content.writeTo(src, module); err != nil {
		return p, err
	}
	began := time.Now()
	if _, err := goTool(ctx, src, nil, "mod", "tidy", "-diff"); err != nil {
		return p, fmt.Errorf("the build would change go.mod or go.sum, or cannot read a module: %w", err)
	}
	if _, err := goTool(ctx, src, nil, "build", "-trimpath", "-ldflags=-s -w", "-o", p.bin,
		"./"+path.Dir(mainFile)); err != nil {
		return p, err
	}
	p.built = time.Since(began)
	p.declared, err = declaredIn(src, e.With)
	return p, err
}

func (p program) remove() error { return os.RemoveAll(p.dir) }

// declared holds the operator's declared actions, agents and servers in an archive.
type declared struct {
	agents string // the folder of agents in the archive, or empty
	server string // the file of MCP servers in the archive, or empty
	secret []byte // the value for MCP_SECRETS, with each name that the file refers to
	folder string // the folder of actions in the archive, or empty
	list   []action.Action
}

// declaredIn finds the outermost folder of actions, and the folder of agents, among the operator's files.
func declaredIn(src string, with []string) (d declared, err error) {
	for _, name := range with {
		if strings.HasSuffix(name, ".agent.yaml") {
			d.agents = path.Dir(name)
		}
		if path.Ext(name) == ".json" && d.server == "" {
			if err := d.findServers(src, name); err != nil {
				return d, err
			}
		}
		if path.Base(name) != "plugin.yaml" {
			continue
		}
		if folder := path.Dir(name); d.folder == "" || len(folder) < len(d.folder) {
			d.folder = folder
		}
	}
	if d.folder == "" {
		return d, nil
	}
	if d.list, err = action.Load(filepath.Join(src, filepath.FromSlash(d.folder))); err != nil { // try the parent
		d.folder = path.Dir(d.folder)
		d.list, err = action.Load(filepath.Join(src, filepath.FromSlash(d.folder)))
	}
	return d, err
}

// standIn is a value that is valid wherever a file of servers refers to a secret, including in an address.
const standIn = "https://server.example"

// findServers records the file as the file of MCP servers if it is one.
func (d *declared) findServers(src, name string) error {
	file, err := mcpfile.Read(filepath.Join(src, filepath.FromSlash(name)))
	if err != nil {
		return nil // some other JSON file; the function reports an error if it is configured
	}
	values := map[string]string{}
	for _, s := range file.Servers {
		if _, err := s.Fill(func(name string) string { values[name] = standIn; return standIn }); err != nil {
			return err
		}
	}
	d.server = name
	d.secret, err = json.Marshal(values)
	return err
}

func (d declared) settings() (settings []string) {
	if d.server != "" {
		settings = append(settings, "MCP_SERVERS="+sourceFolder+"/"+d.server, "MCP_SECRETS="+string(d.secret))
	}
	if d.agents != "" {
		settings = append(settings, "AGENTS="+sourceFolder+"/"+d.agents)
	}
	if d.folder != "" {
		settings = append(settings, "ACTIONS="+sourceFolder+"/"+d.folder,
			"ACTION_KEY="+strings.Repeat("0123456789abcdef", 4))
	}
	return settings
}

// unbound returns the actions that the function does not run, according to the response to /health.
func (d declared) unbound(health []byte) (names []string, err error) {
	var h struct{ Tools []string }
	if err := json.Unmarshal(health, &h); err != nil {
		return nil, fmt.Errorf("reading the response to /health: %w", err)
	}
	for _, a := range d.list {
		if !slices.Contains(h.Tools, action.GeminiName(a.Name)) {
			names = append(names, a.Name)
		}
	}
	return names, nil
}

// layout makes the first checks of the build, and checks that the archive has no forbidden file. It returns the path of
// the module.
func layout(content files) (string, error) {
	for name, body := range content {
		if !filepath.IsLocal(name) {
			return "", fmt.Errorf("%s leaves the archive", name)
		}
		if err := forbidden(name, body); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "function.go", "LICENSE"} {
		if len(content[name]) == 0 {
			return "", fmt.Errorf("%s is missing", name)
		}
	}
	if err := onePackage(content); err != nil {
		return "", err
	}
	module := ""
	for line := range strings.Lines(string(content["go.mod"])) {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "module":
			module = rest
		case "toolchain":
			return "", fmt.Errorf("go.mod has a toolchain line, which the build would download: remove it")
		}
	}
	if first, _, _ := strings.Cut(module, "/"); !strings.Contains(first, ".") {
		return "", fmt.Errorf("go.mod names the module %q; the build requires a dot before the first slash", module)
	}
	return module, nil
}

// onePackage checks that the root folder holds one package, which imports the framework.
func onePackage(content files) error {
	found, registers := "", false
	for name, body := range content {
		if path.Ext(name) != ".go" || strings.Contains(name, "/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, body, parser.ImportsOnly)
		if err != nil {
			return err
		}
		if found != "" && found != file.Name.Name {
			return fmt.Errorf("the root holds the packages %s and %s; the build requires one", found, file.Name.Name)
		}
		found = file.Name.Name
		for _, i := range file.Imports {
			registers = registers || i.Path.Value == `"`+framework+`/functions"`
		}
	}
	if !registers {
		return fmt.Errorf("the package in the root does not import %s/functions, as the build requires",
			framework)
	}
	return nil
}

// function is a running program.
type function struct {
	base     string // the URL
	health   []byte // the response to /health
	answered time.Duration
	stop     func()
}

// start starts the program as a function, with the given settings in addition to the minimal ones. It returns once
// /health reports success.
func (p program) start(ctx context.Context, settings ...string) (f function, err error) {
	port, err := freeport.Port()
	if err != nil {
		return f, err
	}
	f.base = "http://127.0.0.1:" + port
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, p.bin)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, &out, &out
	cmd.Env = slices.Concat(environment(p.entryPoint), p.declared.settings(),
		[]string{"PORT=" + port, "PUBLIC_URL=" + f.base}, settings)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return f, err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it was killed, or its output says why it exited
		close(ended)
	}()
	f.stop = func() {
		_ = cmd.Process.Kill() // it may have exited
		<-ended
	}
	f.health, err = awaitHealth(ctx, f.base, ended)
	f.answered = time.Since(began)
	if err != nil {
		f.stop()
		return f, fmt.Errorf("started with FUNCTION_TARGET=%s, %w\n%s", p.entryPoint, err, out.Bytes())
	}
	return f, nil
}

// awaitHealth requests /health until the function answers or exits.
func awaitHealth(ctx context.Context, base string, ended <-chan struct{}) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	client := &http.Client{Timeout: answerWithin, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		status, body, err := health(ctx, client, base)
		if err == nil && status == http.StatusOK {
			return body, nil
		}
		if err == nil {
			return nil, fmt.Errorf("/health answered %d %s", status, body)
		}
		select {
		case <-ended:
			return nil, errors.New("it exited without an answer")
		case <-ctx.Done():
			return nil, fmt.Errorf("/health did not answer: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func health(ctx context.Context, client *http.Client, base string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/health", nil)
	if err != nil {
		return 0, nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4096))
	return res.StatusCode, body, err
}

// environment returns the minimal environment of a deployed function. The addresses of its backends have no servers,
// because a function starts without them.
func environment(target string) []string {
	return []string{"FUNCTION_TARGET=" + target, "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"LOG_LEVEL=warn",
		"STORE=firestore", "GOOGLE_CLOUD_PROJECT=demo-verify", "FIRESTORE_EMULATOR_HOST=127.0.0.1:9",
		"PUBSUB_EMULATOR_HOST=127.0.0.1:9",
		"GEMINI_API_KEY=not-a-real-key-but-long-enough", "AUTH_ISSUER=http://127.0.0.1:9/issuer", "AUTH_AUDIENCE=test",
		"PUSH_AUDIENCE=https://resume.example", "PUSH_SERVICE_ACCOUNT=push@test.iam.gserviceaccount.com"}
}
