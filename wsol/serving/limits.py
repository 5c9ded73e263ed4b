"""What a request may bring, so that no photo fills the memory."""

LARGEST_UPLOAD = 64 * 2**20  # bytes of a photo's file
LARGEST_PIXELS = 64_000_000  # of a photo; the largest of today's telephones mostly give 50 megapixels
LARGEST_RECORD = 16 * 2**20  # bytes of the boxes that a download is made of

UPLOADS_AT_ONCE = 4  # files in memory that wait to be decoded; further clients wait for their turn
TURN_SECONDS = 120  # how long a client waits for its turn
BODY_SECONDS = 120  # how long a client may take to send its file
SILENT_SECONDS = 20  # how long a connection may say nothing

PICTURE_SIDE = 1600  # of the picture that the page shows
THUMBNAIL_SIDE = 192  # of an example
