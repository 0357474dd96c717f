package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/notify/webpush"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/pushservice"
)

// restarts stops Countersign and starts it again with more settings, like a deployment with new secrets.
func (w *deployment) restarts(settings map[string]string) {
	w.t.Helper()
	maps.Copy(w.env, settings)
	if err := w.Stop(); err != nil {
		w.t.Fatal(err)
	}
	w.starts()
}

// starts starts Countersign with the operator's environment.
func (w *deployment) starts() {
	w.t.Helper()
	var all []string
	for name, value := range w.env {
		if name != "DATA_DIR" {
			all = append(all, name+"="+value)
		}
	}
	if err := w.Start(w.t.Context(), testkit.Options{Dir: w.env["DATA_DIR"], Settings: all}); err != nil {
		w.t.Fatal(err)
	}
}

// says sends a message of Ana's in a conversation, and returns the answer.
func (w *deployment) says(history any) testkit.Answer {
	w.t.Helper()
	w.SetModel(testkit.Says("Hello."))
	ana, err := w.As(w.t.Context(), "ana")
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := ana.Chat(w.t.Context(), map[string]any{"message": "hi", "history": history})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *deployment) rotated(key string, flags ...string) string {
	w.t.Helper()
	return strings.TrimSpace(w.prints(nil, append([]string{"rotate", key}, flags...)...))
}

// TestRotate rotates the keys of linked accounts and of conversations, and retires the earlier ones. Conversations and
// accounts stay usable after the rotation. After the retirement, an old conversation is refused, and the error says
// why.
func TestRotate(t *testing.T) {
	onBothStores(t, func(w *deployment) {
		w.mail(true)
		before := w.says([]any{})
		if before.HTTP != 200 {
			t.Fatalf("%d %s", before.HTTP, before.Body)
		}
		w.restarts(map[string]string{"CHAT_KEY": w.rotated("chat-key"), "TOKEN_KEY": w.rotated("token-key")})
		w.mail(true)
		if sent := len(w.Effects()); sent != 2 {
			t.Errorf("after the rotation %d e-mails were sent, want 2", sent)
		}
		between := w.says(before.History)
		if between.HTTP != 200 {
			t.Errorf("after the rotation a conversation is answered %d %s", between.HTTP, between.Body)
		}
		w.restarts(map[string]string{"CHAT_KEY": w.rotated("chat-key", "-retire"),
			"TOKEN_KEY": w.rotated("token-key", "-retire")})
		if a := w.says(between.History); a.HTTP != 200 {
			t.Errorf("a conversation with the new seal is answered %d %s", a.HTTP, a.Body)
		}
		if a := w.says(before.History); a.HTTP != 400 || !strings.Contains(a.Error.Message, "was retired") {
			t.Errorf("a conversation with the earlier seal is answered %d %s", a.HTTP, a.Body)
		}
		if err := w.Link(t.Context(), "ana", "ana"); err != nil {
			t.Fatal(err)
		}
		w.mail(true)
		if sent := len(w.Effects()); sent != 3 {
			t.Errorf("after the account was linked again %d e-mails were sent, want 3", sent)
		}
	})
}

func TestRotateRefuses(t *testing.T) {
	const one = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
		err  string
	}{
		"another key":  {nil, []string{"host-key"}, "rotate takes chat-key"},
		"no chat key":  {nil, []string{"chat-key"}, "CHAT_KEY is not set"},
		"no token key": {nil, []string{"token-key"}, "TOKEN_KEY is not set"},
		"no webhooks":  {nil, []string{"webhook-keys"}, "WEBHOOK_KEYS is not set"},
		"no list": {map[string]string{"WEBHOOK_KEYS": `{"crm":1}`}, []string{"webhook-keys"},
			"WEBHOOK_KEYS is not a"},
		"no action key": {nil, []string{"action-key"}, "ACTION_KEY is not set"},
		"one key":       {map[string]string{"CHAT_KEY": one}, []string{"chat-key", "-retire"}, "has one key"},
		"a wrong key":   {map[string]string{"CHAT_KEY": "short"}, []string{"chat-key"}, "CHAT_KEY"},
		"a key in Cloud KMS": {map[string]string{
			"TOKEN_KMS_KEY": "projects/p/locations/l/keyRings/r/cryptoKeys/k"}, []string{"token-key"},
			"Cloud KMS rotates"},
	} {
		w := &deployment{t: t, env: map[string]string{"STORE": "embedded", "DATA_DIR": t.TempDir()}}
		maps.Copy(w.env, tt.env)
		out, errs, err := w.ops(append([]string{"rotate"}, tt.args...)...)
		if out != "" || err == nil || !strings.Contains(err.Error(), tt.err) ||
			strings.Contains(errs+err.Error(), one) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	w := &deployment{t: t, env: map[string]string{"STORE": "embedded", "CHAT_KEY": strings.Repeat(one+",", 3) + one}}
	if keys := strings.Split(w.rotated("chat-key"), ","); len(keys) != 4 || keys[0] == one || keys[3] != one {
		t.Errorf("a full list becomes %d keys", len(keys))
	}
}

// TestRotateWebhookKeys rotates the keys of two endpoints twice, and retires the earlier ones.
func TestRotateWebhookKeys(t *testing.T) {
	key := func(c string) string {
		return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(c, 32)))
	}
	w := &deployment{t: t, env: map[string]string{"STORE": "embedded",
		"WEBHOOK_KEYS": `{"crm":["` + key("a") + `"],"erp":["` + key("b") + `","` + key("c") + `"]}`}}
	read := func(text string) (keys map[string][]string) {
		if err := json.Unmarshal([]byte(text), &keys); err != nil || len(keys) != 2 {
			t.Fatalf("%v: %d endpoints", err, len(keys))
		}
		return keys
	}
	w.env["WEBHOOK_KEYS"] = w.rotated("webhook-keys")
	rotated := read(w.env["WEBHOOK_KEYS"])
	if len(rotated["crm"]) != 2 || rotated["crm"][1] != key("a") || len(rotated["erp"]) != 2 ||
		rotated["erp"][1] != key("b") {
		t.Errorf("rotated: %d and %d keys, or others than the earlier first", len(rotated["crm"]), len(rotated["erp"]))
	}
	retired := read(w.rotated("webhook-keys", "-retire"))
	for name, list := range retired {
		if len(list) != 1 || list[0] != rotated[name][0] {
			t.Errorf("%s keeps %d keys, want the newest", name, len(list))
		}
	}
}

// TestRotateVapidKey rotates the key for notifications. Devices that subscribed with the earlier key are notified until
// that key is retired, and pages subscribe with the new one.
func TestRotateVapidKey(t *testing.T) {
	first, err := webpush.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	service := pushservice.New()
	t.Cleanup(service.Close)
	w := newDeployment(t, "VAPID_KEY="+first)
	w.env["PUBLIC_URL"] = w.Base
	earlier := w.subscribes(service)
	w.restarts(map[string]string{"VAPID_KEY": w.rotated("vapid-key")})
	later := w.subscribes(service)
	w.mail(false)
	await.That(t, "both devices are notified", func() bool { return len(earlier.Got()) == 1 && len(later.Got()) == 1 })
	w.restarts(map[string]string{"VAPID_KEY": w.rotated("vapid-key", "-retire")})
	w.mail(false)
	await.That(t, "the later device is notified", func() bool { return len(later.Got()) == 2 })
	if n := len(earlier.Got()); n != 1 {
		t.Errorf("a device of the retired key got %d messages", n)
	}
}

// subscribes subscribes a browser of Ana's with the key that the server offers.
func (w *deployment) subscribes(service *pushservice.Service) *pushservice.Browser {
	w.t.Helper()
	const path = "/api/agent/push-subscriptions"
	a, err := w.Call(w.t.Context(), "ana", "GET", path, "")
	var offered struct{ PublicKey string }
	if err = errors.Join(err, json.Unmarshal(a.Body, &offered)); err != nil {
		w.t.Fatalf("%v: %s", err, a.Body)
	}
	b, err := service.Subscribe(offered.PublicKey)
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"endpoint": b.Endpoint,
		"keys": map[string]string{"p256dh": b.P256dh, "auth": b.Auth}})
	if err != nil {
		w.t.Fatal(err)
	}
	if a, err = w.Call(w.t.Context(), "ana", "POST", path, string(body)); err != nil || a.HTTP != 200 {
		w.t.Fatalf("%v: %d %s", err, a.HTTP, a.Body)
	}
	return b
}

// TestRotateMCPSecret replaces one secret of the MCP servers, and leaves the others as they are.
func TestRotateMCPSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new")
	if err := os.WriteFile(file, []byte("  a new token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &deployment{t: t, env: map[string]string{"STORE": "embedded", "DATA_DIR": t.TempDir(),
		"MCP_SECRETS": `{"CRM":"an old token","SHOP":"another"}`}}
	next := w.rotated("mcp-secrets", "-name", "CRM", "-from", file)
	if next != `{"CRM":"a new token","SHOP":"another"}` {
		t.Errorf("the next value is %s", next)
	}
	w.env["MCP_SECRETS"] = next
	if _, _, err := w.ops("rotate", "mcp-secrets", "-name", "CRM", "-from", file); err == nil ||
		!strings.Contains(err.Error(), "already has this value") {
		t.Errorf("the same value again: %v", err)
	}
	for want, args := range map[string][]string{
		"has no \"ERP\"":      {"-name", "ERP", "-from", file},
		"-name and -from are": {"-name", "CRM"},
		"no earlier keys":     {"-name", "CRM", "-from", file, "-retire"},
		"is empty":            {"-name", "CRM", "-from", os.DevNull},
	} {
		if _, _, err := w.ops(append([]string{"rotate", "mcp-secrets"}, args...)...); err == nil ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "token") {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// TestRotateOAuthSecret gives the OAuth client another secret. While Countersign still has the earlier one, which
// Google no longer accepts, calls fail. No account is lost, so nothing has to be linked again.
func TestRotateOAuthSecret(t *testing.T) {
	w := newDeployment(t)
	w.mail(true)
	w.OAuth.SetClient(w.Settings()["GOOGLE_OAUTH_CLIENT_ID"], "the-next-secret-of-the-client")
	w.restarts(nil) // the new process has no access token yet
	said := w.reads("ana", w.mail(true)).Actions[0]
	if n := len(w.Effects()); n != 1 || said.ErrorReason != "token_endpoint" {
		t.Fatalf("%d e-mails were sent with a secret that is not valid; ana reads %+v", n, said)
	}
	w.restarts(map[string]string{"GOOGLE_OAUTH_CLIENT_SECRET": "the-next-secret-of-the-client"})
	w.mail(true)
	if n := len(w.Effects()); n != 2 {
		t.Errorf("%d e-mails were sent, want 2: the account was lost", n)
	}
}

// TestLinksAfterNewOAuthClient replaces the OAuth client. Its users are asked to link their accounts again.
func TestLinksAfterNewOAuthClient(t *testing.T) {
	w := newDeployment(t)
	w.mail(true)
	w.OAuth.SetClient("another.apps.example", "its-secret")
	w.restarts(map[string]string{"GOOGLE_OAUTH_CLIENT_ID": "another.apps.example",
		"GOOGLE_OAUTH_CLIENT_SECRET": "its-secret"})
	said := w.reads("ana", w.mail(true)).Actions[0]
	if n := len(w.Effects()); n != 1 || said.ErrorReason != "reauth_required" {
		t.Fatalf("%d e-mails were sent; the call says %+v", n, said)
	}
	if err := w.Link(t.Context(), "ana", "ana"); err != nil {
		t.Fatal(err)
	}
	w.mail(true)
	if n := len(w.Effects()); n != 2 {
		t.Errorf("%d e-mails were sent after the account was linked again, want 2", n)
	}
}
