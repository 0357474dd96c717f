package app_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/notify/webpush"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/pushservice"
)

// onDevices is a deployment with Web Push.
type onDevices struct {
	*proved
	*testing.T
	service *pushservice.Service
	key     string
}

func newTold(t *testing.T, settings ...string) onDevices {
	private, err := webpush.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := webpush.ParseKey(private)
	if err != nil {
		t.Fatal(err)
	}
	service := pushservice.New()
	t.Cleanup(service.Close)
	w := deployWith(t, testkit.Options{Settings: append(settings, "VAPID_KEY="+private)})
	w.mail()
	return onDevices{w, t, service, key.Public()}
}

// subscribed is a device that the user has subscribed.
func (w onDevices) subscribed(uid string) (*pushservice.Browser, string) {
	w.T.Helper()
	b, err := w.service.Subscribe(w.key)
	if err != nil {
		w.T.Fatal(err)
	}
	return b, w.subscribe(uid, b)
}

func (w onDevices) subscribe(uid string, b *pushservice.Browser) (id string) {
	w.T.Helper()
	body, err := json.Marshal(map[string]any{"endpoint": b.Endpoint, "expirationTime": nil, // as browsers send it
		"keys": map[string]string{"p256dh": b.P256dh, "auth": b.Auth}})
	if err != nil {
		w.T.Fatal(err)
	}
	var made struct{ SubscriptionID string }
	w.call(uid, "POST", "/api/agent/push-subscriptions", string(body), 200, &made)
	return made.SubscriptionID
}

// TestKeysInOtherBase64 subscribes a browser whose page encodes the keys in standard base64. It counts as the same
// device.
func TestKeysInOtherBase64(t *testing.T) {
	w := newTold(t)
	b, id := w.subscribed("ana")
	wrapped := func(raw []byte) string { // as MIME has it
		return regexp.MustCompile(".{1,64}").ReplaceAllString(base64.StdEncoding.EncodeToString(raw), "$0\r\n")
	}
	for name, encode := range map[string]func([]byte) string{"padded": base64.URLEncoding.EncodeToString,
		"standard":         base64.RawStdEncoding.EncodeToString,
		"standard, padded": base64.StdEncoding.EncodeToString, "in lines": wrapped} {
		other := pushservice.Browser{Endpoint: b.Endpoint, P256dh: b.P256dh, Auth: b.Auth}
		for _, key := range []*string{&other.P256dh, &other.Auth} {
			raw, err := webpush.Decode(*key)
			if err != nil {
				t.Fatal(err)
			}
			*key = encode(raw)
		}
		if got := w.subscribe("ana", &other); got != id {
			t.Errorf("%s: it is another device, %s", name, got)
		}
	}
}

// call sends a user's request, checks the status, and reads the answer.
func (w onDevices) call(uid, method, path, body string, status int, into any) {
	w.T.Helper()
	a, err := w.Call(w.Context(), uid, method, path, body)
	if err != nil || a.HTTP != status {
		w.T.Fatalf("%s %s: %v, %d %s; want a.HTTP %v", method, path, err, a.HTTP, a.Body, status)
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		w.T.Fatal(err)
	}
}

// ids returns the IDs of the user's devices.
func (w onDevices) ids(uid string) (key string, ids []string) {
	w.T.Helper()
	var got struct {
		PublicKey     string
		Subscriptions []struct{ SubscriptionID string }
	}
	w.call(uid, "GET", "/api/agent/push-subscriptions", "", 200, &got)
	for _, s := range got.Subscriptions {
		ids = append(ids, s.SubscriptionID)
	}
	return got.PublicKey, ids
}

// got waits until a device has received so many messages, and returns the last one.
func (w onDevices) got(b *pushservice.Browser, n int) pushservice.Message {
	w.T.Helper()
	await.That(w.T, "the device is told", func() bool { return len(b.Got()) == n })
	return b.Got()[n-1]
}

// TestDevice checks that a device is notified of a waiting e-mail without its content, and of the approval, and that
// another user's device is not.
func TestDevice(t *testing.T) {
	w := newTold(t)
	phone, _ := w.subscribed("ana")
	laptop, _ := w.subscribed("ana")
	other, _ := w.subscribed("bob")
	asked := w.ask()
	for _, b := range []*pushservice.Browser{phone, laptop} {
		m := w.got(b, 1)
		want := `{"asks":true,"approvalId":"` + asked.Approvals[0].ApprovalID +
			`","question":"Approve an e-mail to one person?","threadId":"` + asked.ThreadID + `"}`
		if m.Plain != want || m.Urgency != "high" || m.Topic == "" || m.TTL <= 0 {
			t.Errorf("told %+v, want %s", m, want)
		}
	}
	topic := phone.Got()[0].Topic
	w.approve(asked)
	if m := w.got(phone, 2); m.Plain != `{"asks":false,"approvalId":"`+asked.Approvals[0].ApprovalID+`"}` ||
		m.Topic != topic {
		t.Errorf("told %+v", m)
	}
	if len(other.Got()) != 0 || len(w.service.Refused()) != 0 {
		t.Errorf("bob was told %v, and %v was refused", other.Got(), w.service.Refused())
	}
	if strings.Contains(w.Logs.String(), "/push/") {
		t.Error("the log says where a device is")
	}
}

// TestDeviceBesideAWebhook checks that a device is notified once, however often an event is sent again to a webhook
// that is down.
func TestDeviceBesideAWebhook(t *testing.T) {
	r := newReceiver(t)
	r.set(true)
	w := newTold(t, r.settings(t, "")...)
	phone, _ := w.subscribed("ana")
	asked := w.ask()
	w.got(phone, 1)
	for range 3 { // as the sweep does later
		if _, err := w.App.API.Loop.Advance(t.Context(), asked.RunID, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.set(false)
	w.approve(asked) // sent after everything else
	if m := w.got(phone, 2); !strings.Contains(m.Plain, `"asks":false`) {
		t.Errorf("told again: %+v", phone.Got())
	}
}

// TestDeviceNotifications repeats an event while the user is disabled, after they are enabled again, and after the
// decision.
func TestDeviceNotifications(t *testing.T) {
	w := newTold(t)
	phone, _ := w.subscribed("ana")
	asked := w.ask()
	w.got(phone, 1)
	token, err := w.PushToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	event := `{"specversion":"1.0","id":"run1.6","type":"run.countersign.approval.requested","subject":"run1","data":` +
		`{"uid":"ana","approvalId":"` + asked.Approvals[0].ApprovalID + `"}}`
	again := func(when string, want int) {
		t.Helper()
		a, err := testkit.Connect(nil, w.Base, token)(t.Context(), "POST", "/api/agent/notify",
			`{"message":{"data":"`+base64.StdEncoding.EncodeToString([]byte(event))+`","messageId":"1"},`+
				`"subscription":"projects/p/subscriptions/devices","deliveryAttempt":1}`)
		if err != nil || a.HTTP != http.StatusNoContent || len(phone.Got()) != want {
			t.Errorf("%s: %v, %d %s, told %d times and not %d", when, err, a.HTTP, a.Body, len(phone.Got()), want)
		}
	}
	disabled := func(is bool) {
		if _, err := w.App.API.Records.SetDisabled(t.Context(), "ana", is); err != nil {
			t.Fatal(err)
		}
	}
	disabled(true)
	again("locked out", 1)
	disabled(false)
	again("let in", 2)
	w.approve(asked)
	w.got(phone, 3)
	again("decided", 3)
}

// TestDeviceGone checks that a device that is gone is removed, and one that is unreachable is not.
func TestDeviceGone(t *testing.T) {
	w := newTold(t)
	gone, _ := w.subscribed("ana")
	down, id := w.subscribed("ana")
	gone.Answers(http.StatusGone)
	down.Answers(http.StatusServiceUnavailable)
	w.ask()
	await.That(t, "the device is forgotten", func() bool {
		_, ids := w.ids("ana")
		return len(ids) == 1 && ids[0] == id
	})
}

// TestDevicesOfUser checks that the newest ten devices are kept, each once, and that only their user can remove them.
func TestDevicesOfUser(t *testing.T) {
	w := newTold(t)
	first, firstID := w.subscribed("ana")
	if again := w.subscribe("ana", first); again != firstID {
		t.Errorf("the same device is %s and %s", firstID, again)
	}
	key, ids := w.ids("ana")
	if key != w.key || len(ids) != 1 {
		t.Errorf("%s, %v; want key %v, len(ids) 1", key, ids, w.key)
	}
	var removed struct{ Existed bool }
	w.call("bob", "DELETE", "/api/agent/push-subscriptions/"+firstID, "", 200, &removed)
	if _, ids := w.ids("ana"); removed.Existed || len(ids) != 1 {
		t.Error("bob has taken away what is ana's")
	}
	for range 10 {
		w.subscribed("ana")
	}
	if _, ids = w.ids("ana"); len(ids) != 10 || ids[0] == firstID {
		t.Fatalf("kept %v", ids)
	}
	w.call("ana", "DELETE", "/api/agent/push-subscriptions/"+ids[0], "", 200, &removed)
	if _, ids := w.ids("ana"); !removed.Existed || len(ids) != 9 {
		t.Errorf("kept %v", ids)
	}
	for body, field := range map[string]string{
		`{"endpoint":"http://push.example.com/1","keys":{"p256dh":"","auth":""}}`:  "endpoint",
		`{"endpoint":"https://push.example.com/1","keys":{"p256dh":"","auth":""}}`: "keys/auth",
	} {
		var refused struct{ Error struct{ Field string } }
		w.call("ana", "POST", "/api/agent/push-subscriptions", body, 400, &refused)
		if refused.Error.Field != field {
			t.Errorf("%s: %+v; want refused.Error.Field %v", body, refused, field)
		}
	}
}

// TestDevicesWithoutKey checks that nothing is offered without a key.
func TestDevicesWithoutKey(t *testing.T) {
	w := deployWith(t, testkit.Options{})
	a, err := w.Call(t.Context(), "ana", "GET", "/api/agent/push-subscriptions", "")
	if err != nil || a.HTTP != 200 || strings.Contains(string(a.Body), "publicKey") {
		t.Errorf("%v: %s", err, a.Body)
	}
	a, err = w.Call(t.Context(), "ana", "POST", "/api/agent/push-subscriptions", `{"endpoint":"","keys":{}}`)
	if err != nil || a.HTTP != 409 || !strings.Contains(string(a.Body), "not_applicable") {
		t.Errorf("%v: %d %s; want a.HTTP 409, a.Body with “not_applicable”", err, a.HTTP, a.Body)
	}
}
