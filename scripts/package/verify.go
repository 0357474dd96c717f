package main

import (
	"bytes"
	"context"
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
	"strings"
	"time"
)

// sourceFolder is where the cloud's build moves an archive's files to; a function starts in the folder above it.
const sourceFolder = "serverless_function_source_code"

const answerWithin = 30 * time.Second

type times struct{ built, answered time.Duration }

// verify does with an archive what the cloud does: it looks at the layout, tidies, builds, starts it and asks for its health.
// What the cloud would change is an error, because what runs would not be what was tested.
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
	if _, err := goTool(ctx, src, nil, "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "./"+path.Dir(mainFile)); err != nil {
		return t, err
	}
	t.built = time.Since(began)
	t.answered, err = start(ctx, dir, bin, e.EntryPoint)
	return t, err
}

// layout checks what the build checks before it builds, and that nothing is within which should not be. It gives the path
// of the module.
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
		return fmt.Errorf("the package at the root does not import %s/functions, which the build wants to see", framework)
	}
	return nil
}

// start starts the function, waits until it answers that it is well, and ends it.
func start(ctx context.Context, dir, bin, target string) (time.Duration, error) {
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, bin)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environment(target, port), &out, &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
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
			return took, nil
		}
		if err == nil {
			stop()
			<-ended
			return 0, fmt.Errorf("started as %s, it answers /health with %d %s\n%s", target, status, body, out.Bytes())
		}
		select {
		case <-ended:
			return 0, fmt.Errorf("started as %s, it ends without an answer\n%s", target, out.Bytes())
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

// environment is the least that a function of the cloud is given. Nothing listens at its backends: a start needs none.
func environment(target, port string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "FUNCTION_TARGET=" + target, "PORT=" + port, "LOG_LEVEL=warn",
		"STORE=firestore", "GOOGLE_CLOUD_PROJECT=demo-verify", "FIRESTORE_EMULATOR_HOST=127.0.0.1:9", "PUBSUB_EMULATOR_HOST=127.0.0.1:9",
		"GEMINI_API_KEY=not-a-real-key-but-long-enough", "AUTH_ISSUER=http://127.0.0.1:9/issuer", "AUTH_AUDIENCE=test",
		"PUBLIC_URL=http://127.0.0.1:" + port, "PUSH_AUDIENCE=https://resume.example", "PUSH_SERVICE_ACCOUNT=push@test.iam.gserviceaccount.com"}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}
