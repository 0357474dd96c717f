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
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/action"
)

// sourceFolder is where the cloud's build moves an archive's files to; a function starts in the folder above it.
const sourceFolder = "serverless_function_source_code"

const answerWithin = 30 * time.Second

// times holds the durations of a verification, and the actions without a handler.
type times struct {
	built, answered time.Duration
	unbound         []string // actions of the operator's with neither an endpoint nor Go code
}

// verify treats an archive as the cloud does: it checks the layout, tidies, builds, starts it and requests its health.
// A change that the cloud would make is an error, because the deployed code would differ from the tested code.
func verify(ctx context.Context, e entry, archive []byte) (t times, err error) {
	content, err := unpack(archive)
	if err != nil {
		return t, err
	}
	module, err := layout(content)
	if err != nil {
		return t, err
	}
	dir, err := os.MkdirTemp("", "verify")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	src := filepath.Join(dir, sourceFolder)
	if err := content.writeTo(src, module); err != nil {
		return t, err
	}
	began := time.Now()
	if _, err := goTool(ctx, src, nil, "mod", "tidy", "-diff"); err != nil {
		return t, fmt.Errorf("the build would change go.mod or go.sum, or cannot read a module: %w", err)
	}
	bin := filepath.Join(dir, "main")
	if _, err := goTool(ctx, src, nil, "build", "-trimpath", "-ldflags=-s -w", "-o", bin,
		"./"+path.Dir(mainFile)); err != nil {
		return t, err
	}
	t.built = time.Since(began)
	declared, err := declaredIn(filepath.Join(dir, sourceFolder), e.With)
	if err != nil {
		return t, err
	}
	var body []byte
	t.answered, body, err = start(ctx, dir, bin, append(environment(e.EntryPoint), declared.settings()...))
	if err != nil {
		return t, err
	}
	t.unbound, err = declared.unbound(body)
	return t, err
}

// declared holds the operator's actions and agents in an archive.
type declared struct {
	agents string // the folder of agents within the archive; empty without agents
	folder string // of the actions, likewise
	list   []action.Action
}

// declaredIn finds the outermost folder of actions, and the folder of agents, among the operator's files.
func declaredIn(src string, with []string) (d declared, err error) {
	for _, name := range with {
		if strings.HasSuffix(name, ".agent.yaml") {
			d.agents = path.Dir(name)
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
	if d.list, err = action.Load(filepath.Join(src, filepath.FromSlash(d.folder))); err != nil { // the folder above
		d.folder = path.Dir(d.folder)
		d.list, err = action.Load(filepath.Join(src, filepath.FromSlash(d.folder)))
	}
	return d, err
}

func (d declared) settings() (settings []string) {
	if d.agents != "" {
		settings = append(settings, "AGENTS="+sourceFolder+"/"+d.agents)
	}
	if d.folder != "" {
		settings = append(settings, "ACTIONS="+sourceFolder+"/"+d.folder,
			"ACTION_KEY="+strings.Repeat("0123456789abcdef", 4))
	}
	return settings
}

// unbound returns the actions that the function does not carry out, according to its answer to /health.
func (d declared) unbound(health []byte) (names []string, err error) {
	var h struct{ Tools []string }
	if err := json.Unmarshal(health, &h); err != nil {
		return nil, fmt.Errorf("the answer to /health cannot be read: %w", err)
	}
	for _, a := range d.list {
		if !slices.Contains(h.Tools, action.GeminiName(a.Name)) {
			names = append(names, a.Name)
		}
	}
	return names, nil
}

// layout checks what the build checks first, and that no forbidden file is in the archive. It returns the path of the
// module.
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
			return "", fmt.Errorf("go.mod has a toolchain line, which the build would download: take it out")
		}
	}
	if first, _, _ := strings.Cut(module, "/"); !strings.Contains(first, ".") {
		return "", fmt.Errorf("go.mod names the module %q; the build wants a dot before the first slash", module)
	}
	return module, nil
}

// onePackage checks that the root holds one package, which imports the framework.
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
			return fmt.Errorf("the root holds the packages %s and %s; the build takes one", found, file.Name.Name)
		}
		found = file.Name.Name
		for _, i := range file.Imports {
			registers = registers || i.Path.Value == `"`+framework+`/functions"`
		}
	}
	if !registers {
		return fmt.Errorf("the package at the root does not import %s/functions, which the build wants to see",
			framework)
	}
	return nil
}

// start starts the function, waits until it answers that it is well, and ends it.
func start(ctx context.Context, dir, bin string, env []string) (time.Duration, []byte, error) {
	port, err := freePort()
	if err != nil {
		return 0, nil, err
	}
	env = append(env, "PORT="+port, "PUBLIC_URL=http://127.0.0.1:"+port)
	target := env[0]
	ctx, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, bin)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &out, &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	client := &http.Client{Timeout: answerWithin, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		status, body, err := health(ctx, client, port)
		if err == nil && status == http.StatusOK {
			took := time.Since(began)
			stop()
			<-ended // it was killed
			return took, body, nil
		}
		if err == nil {
			stop()
			<-ended
			return 0, nil, fmt.Errorf("started with %s, it answers /health with %d %s\n%s", target, status, body,
				out.Bytes())
		}
		select {
		case <-ended:
			return 0, nil, fmt.Errorf("started with %s, it ends without an answer\n%s", target, out.Bytes())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func health(ctx context.Context, client *http.Client, port string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/health", nil)
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

// environment returns the minimal environment of a deployed function. No server listens at its backends: a start needs
// none.
func environment(target string) []string {
	return []string{"FUNCTION_TARGET=" + target, "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"LOG_LEVEL=warn",
		"STORE=firestore", "GOOGLE_CLOUD_PROJECT=demo-verify", "FIRESTORE_EMULATOR_HOST=127.0.0.1:9",
		"PUBSUB_EMULATOR_HOST=127.0.0.1:9",
		"GEMINI_API_KEY=not-a-real-key-but-long-enough", "AUTH_ISSUER=http://127.0.0.1:9/issuer", "AUTH_AUDIENCE=test",
		"PUSH_AUDIENCE=https://resume.example", "PUSH_SERVICE_ACCOUNT=push@test.iam.gserviceaccount.com"}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}
