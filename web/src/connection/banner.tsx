/** What the page says while its server is not there: what has happened, and what to type. */
import { connection } from "../server/stream";
import { Icon } from "../ui";

export function Banner() {
  const now = connection.value;
  if (now !== "lost" && now !== "refused") return null;
  return (
    <div role="alert" class="banner">
      <Icon name="warning" />
      {now === "lost" ? (
        <p>
          The server has ended, so nothing new is run. Start it again with <code>tcpscape explore --port {location.port}</code>; this page then goes
          on by itself.
        </p>
      ) : (
        <p>The server was started again. Open the address that it printed; this page then goes on by itself.</p>
      )}
    </div>
  );
}
