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

// checkTimeout limits the wait for the service's answer.
const checkTimeout = 20 * time.Second

// setup needs neither a store nor a queue. If neither the environment nor config/.gemini.yaml (or the file in
// GEMINI_CONFIG) has a configuration, it writes that file from a template. It never overwrites a file. Otherwise it
// checks that the configuration can be read and has a key, and that the service accepts the key. This takes one free
// request. setup never prints the key.
func setup(*flag.FlagSet) runFunc {
	return func(ctx context.Context, o *operator, _ []string) error {
		said, ready := prepare(ctx, o.getenv)
		if err := o.printf("%s", said); err != nil || ready {
			return err
		}
		return errFailed
	}
}

// prepare returns the text to print, which states the findings and the next step.
func prepare(ctx context.Context, getenv func(string) string) (said string, ready bool) {
	path := cmp.Or(getenv("GEMINI_CONFIG"), config.FilePath)
	if getenv("GEMINI_API_KEY") == "" && getenv("VERTEX_AI_PROJECT_ID") == "" {
		switch err := writeTemplate(path); {
		case err == nil:
			return fmt.Sprintf("Wrote %s without a key.\nNext: get a key at "+
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
		next := "correct this and run setup again. No request was sent to the service."
		if file, _ := config.ReadFile(getenv); file.Placeholder { // err may describe other mistakes too
			next = placeholderNext
		}
		return fmt.Sprintf("%v\nNext: %s", err, next), false
	}
	said, ready = advise(checkKey(ctx, cfg), cfg.GeminiModel, keySource(getenv, path))
	return permissionWarning(path) + said, ready
}

// placeholderNext is the advice for a file that still has the template's key.
const placeholderNext = `the key is still the template's placeholder. You have two options:
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

// keySource names the place that the credentials come from: an environment variable or the file.
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

// advise describes the service's answer, and the next step.
func advise(err error, name, source string) (said string, ready bool) {
	if err == nil {
		return fmt.Sprintf("Ready: the service accepts %s and knows the model %s.\nNext: go run "+
			"./scripts/dev", source, name), true
	}
	next := "if GOOGLE_GEMINI_BASE_URL is set, check that the service there implements the Gemini protocol. Then " +
		"run this again."
	switch fault.As(err).Code {
	case model.CodeRefused:
		next = "check the key and the model in " + source +
			"; you can create keys at https://aistudio.google.com/apikey. Then run this again."
	case model.CodeOverloaded, model.CodeDeadline:
		next = "run this again when the service can be reached. " + source +
			" is complete, but could not be checked."
	case model.CodeQuota:
		next = "wait, or use a key with a larger quota."
	}
	return fault.As(err).Message + "\nNext: " + next, false
}
