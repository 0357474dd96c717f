package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/app/gemini"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/config"
)

//go:embed template.yaml
var template []byte

// checkTimeout is how long the service may take to answer.
const checkTimeout = 20 * time.Second

// setup needs neither store nor queue. If neither the environment nor config/.gemini.yaml (or the file that
// GEMINI_CONFIG names) has a configuration, it writes the file as a template, and never overwrites one. Otherwise it
// checks that the configuration is readable, filled in, and accepted by the service, with one request that costs
// nothing. It never shows the key.
func setup(*flag.FlagSet) runFunc {
	return func(ctx context.Context, o *operator, _ []string) error {
		said, ready := prepare(ctx, o.getenv)
		if err := o.printf("%s", said); err != nil || ready {
			return err
		}
		return errFailed
	}
}

// prepare returns the text to print: the findings, and the next steps.
func prepare(ctx context.Context, getenv func(string) string) (said string, ready bool) {
	path := cmp.Or(getenv("GEMINI_CONFIG"), config.FilePath)
	if getenv("GEMINI_API_KEY") == "" && getenv("VERTEX_AI_PROJECT_ID") == "" {
		switch err := writeTemplate(path); {
		case err == nil:
			return fmt.Sprintf("Wrote %s, which holds no key yet.\nNext: get a key at "+
				"https://aistudio.google.com/apikey, put it there as apiKey, and run this again.\n"+
				"(Without a key, go run ./scripts/dev works with the offline demo model.)",
				path), false
		case !errors.Is(err, fs.ErrExist):
			return fmt.Sprintf("%s cannot be written: %v\nNext: run this where its folder can be written to, or set "+
				"GEMINI_API_KEY.", path, err), false
		}
	}
	cfg, err := config.Load(getenv, config.Model)
	if err != nil {
		next := "mend this and run it again. Nothing was asked of the service."
		if file, _ := config.ReadFile(getenv); file.Placeholder { // err has what else is wrong
			next = placeholderNext
		}
		return fmt.Sprintf("%v\nNext: %s", err, next), false
	}
	said, ready = advise(checkKey(ctx, cfg), cfg.GeminiModel, keySource(getenv, path))
	return permissionWarning(path) + said, ready
}

// placeholderNext is what to do about a key that is still the template's.
const placeholderNext = `that is the placeholder of the template and no key. There are two ways on:
  with Gemini: get a key at https://aistudio.google.com/apikey, put it there in its place, or set GEMINI_API_KEY, and
  run this again;
  without: go run ./scripts/dev works with the offline demo model as long as no key is there, and says so.`

// writeTemplate creates the file. It never changes an existing file, or the target of a link.
func writeTemplate(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(template)
	return errors.Join(err, f.Close())
}

// permissionWarning returns a warning if other users of this machine can read the file.
func permissionWarning(path string) string {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		return fmt.Sprintf("Others on this machine can read %s: chmod 600 %[1]s\n", path)
	}
	return ""
}

// keySource returns where the key comes from.
func keySource(getenv func(string) string, path string) string {
	switch {
	case getenv("VERTEX_AI_PROJECT_ID") != "":
		return "VERTEX_AI_PROJECT_ID"
	case getenv("GEMINI_API_KEY") != "":
		return "GEMINI_API_KEY"
	}
	return path
}

func checkKey(ctx context.Context, cfg config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	service, err := gemini.New(ctx, cfg)
	if err != nil {
		return err
	}
	return service.Check(ctx)
}

// advise describes the service's answer, and what to do next.
func advise(err error, name, source string) (said string, ready bool) {
	if err == nil {
		return fmt.Sprintf("Ready: the service accepts what %s says, and knows the model %s.\nNext: go run "+
			"./scripts/dev", source, name), true
	}
	next := "see that GOOGLE_GEMINI_BASE_URL, where it is set, names a service that speaks the Gemini protocol, and " +
		"run this again."
	switch fault.As(err).Code {
	case model.CodeRefused:
		next = "check the key and the model in " + source +
			"; keys are made at https://aistudio.google.com/apikey. Then run this again."
	case model.CodeOverloaded, model.CodeDeadline:
		next = "run this again with a connection to the service. What " + source +
			" says is filled in, but whether it is accepted could not be found out."
	case model.CodeQuota:
		next = "wait, or use a key with a larger quota."
	}
	return fault.As(err).Message + "\nNext: " + next, false
}
