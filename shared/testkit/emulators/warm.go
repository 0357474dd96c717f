package emulators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// warmTime is the time that a started emulator has for its first requests. Java loads most of its code during them,
// and on a busy machine that takes longer than a client waits for a store.
const warmTime = 90 * time.Second

// warmFirestore sends the first commit and the first query to a Firestore emulator, in a project of their own, and
// waits for the answers.
func warmFirestore(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	const database = "projects/warm/databases/(default)"
	write := fmt.Sprintf(`{"writes":[{"update":{"name":"%s/documents/warm/up","fields":{"at":{"integerValue":"1"}}}}]}`,
		database)
	query := `{"structuredQuery":{"from":[{"collectionId":"warm"}],"where":{"fieldFilter":{"field":{"fieldPath":"at"},"op":"LESS_THAN","value":{"integerValue":"2"}}}}}`
	_, wrote := send(ctx, http.MethodPost, addr, database+"/documents:commit", write)
	_, read := send(ctx, http.MethodPost, addr, database+"/documents:runQuery", query)
	return errors.Join(wrote, read)
}

// warmPubSub requests the topics of a project that has none from a Pub/Sub emulator.
func warmPubSub(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	_, err := send(ctx, http.MethodGet, addr, "projects/warm/topics", "")
	return err
}

// send sends a request to an emulator, and returns the whole answer.
func send(ctx context.Context, method, addr, path, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+"/v1/"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer owner")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the emulator at %s answered %d: %s", addr, res.StatusCode, text[:min(len(text), 1<<10)])
	}
	return text, err
}
