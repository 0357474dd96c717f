declare const process: { env: Record<string, string | undefined> };

/**
 * Reports missing configuration. The project registers the service COUNTERSIGN, because only the project knows the
 * current user.
 */
export async function setupGeminiAgent(): Promise<{ status: 'configured' | 'needs-config'; message: string }> {
  const endpoint = process.env.COUNTERSIGN_URL ?? '';
  if (!URL.canParse(endpoint)) return { status: 'needs-config', message: 'Set COUNTERSIGN_URL to the address of Countersign, and register the service COUNTERSIGN with it and the token of the user.' };
  return { status: 'configured', message: `Countersign is at ${new URL(endpoint).origin}. Register the service COUNTERSIGN with it and the token of the user.` };
}
